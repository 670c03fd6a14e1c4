"""Every verdict is reached by a small real candidate, and honest kernels are accepted."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools import builds
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.evaluate import EvaluateKernel, describe
from kernel_scientist.tools.evaluation import Comparison, Evaluation, Verdict
from kernel_scientist.tools.judge import Judge, require_accepted
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets import Target

from .conftest import HONEST, write_problem

Maker = Callable[..., Kernel]

SIMPLE = """
__global__ void filter(const float* x, float* y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  BODY
}
"""
RIGHT = "if (i < n) y[i] = 2.0f * x[i] + (i > 0 ? x[i - 1] : 0.0f);"


def body(text: str) -> str:
    return SIMPLE.replace("BODY", text)


@pytest.fixture(scope="module")
def baseline(judge: Judge) -> Evaluation:
    return judge.evaluate(judge.baseline)


def test_the_baseline_is_accepted_with_speedup_one(baseline: Evaluation) -> None:
    assert baseline.verdict is Verdict.ACCEPTED, baseline.message
    assert baseline.speedup is not None
    assert baseline.speedup.value == 1.0
    assert [timing.shape for timing in baseline.timings] == [{"n": 8192}, {"n": 20001}]
    assert all(
        timing.bound_us is not None and timing.bound_us < timing.time_us for timing in baseline.timings
    )
    assert baseline.sandbox
    assert baseline.target == "cpu"


def test_the_gfx942_compiler_reports_on_an_accepted_kernel(baseline: Evaluation) -> None:
    (resources,) = baseline.resources
    assert resources.arch == "gfx942"
    assert resources.lds_bytes == 4 * 65
    assert resources.vgprs > 0


def test_a_right_kernel_without_lds_is_accepted_and_measured(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel(body(RIGHT)))
    assert evaluation.accepted, evaluation.message
    assert evaluation.speedup is not None
    assert evaluation.speedup.low <= evaluation.speedup.value <= evaluation.speedup.high
    # Three pairs cannot carry 99 %, and the interval must not say so.
    assert evaluation.speedup.level == pytest.approx(0.75)
    assert all(timing.baseline_us and timing.speedup for timing in evaluation.timings)
    assert {"compile", "correctness", "timing", "total"} <= evaluation.seconds.keys()
    names = [check.name for check in evaluation.checks]
    assert sum(name.startswith("held-out shape") for name in names) == judge.settings.held_out_shapes


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(HONEST.replace("tile", "exit_cache") + "// stream time fork é\n", id="words"),
        pytest.param(HONEST.replace("\n", "\r\n"), id="crlf"),
        pytest.param(
            "__device__ const float two[1] = {2.0f};\n" + HONEST.replace("2.0f *", "two[0] *"), id="table"
        ),
        pytest.param("__constant__ float two = 2.0f;\n" + HONEST.replace("2.0f *", "two *"), id="constant"),
    ],
)
def test_honest_look_alikes_are_accepted(judge: Judge, make_kernel: Maker, code: str) -> None:
    evaluation = judge.evaluate(make_kernel(code))
    assert evaluation.accepted, evaluation.message


def test_two_launches_with_scratch_are_accepted(judge: Judge) -> None:
    kernel = Kernel.parse("""/* plan
[[scratch]]
name = "twice"
dtype = "float32"
size = "n"
[[scratch]]
name = "zeros"
dtype = "float32"
size = "n"
init = 0
[[launch]]
kernel = "first"
grid = ["cdiv(n, 128)"]
block = [128]
args = ["x", "twice", "n"]
[[launch]]
kernel = "second"
grid = ["cdiv(n, 128)"]
block = [128]
args = ["x", "twice", "zeros", "y", "n"]
*/
#include <hip/hip_runtime.h>
__global__ void first(const float* x, float* twice, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) twice[i] = 2.0f * x[i];
}
__global__ void second(const float* x, float* twice, float* zeros, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = twice[i] + (i > 0 ? x[i - 1] : zeros[i]);
}
""")
    evaluation = judge.evaluate(kernel)
    assert evaluation.accepted, evaluation.message


def test_a_constant_over_the_shape_makes_a_build_for_each_value(judge: Judge, make_kernel: Maker) -> None:
    kernel = make_kernel(HONEST, **{"BLOCK = 64": 'BLOCK = "64 if n < 10000 else 128"'})
    evaluation = judge.evaluate(kernel)
    assert evaluation.accepted, evaluation.message


def test_many_builds_of_one_kernel_share_a_time_limit(
    judge: Judge, make_kernel: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "_BUILDS_S", 0.0)
    kernel = make_kernel(body(RIGHT) + "// one build per size\n", **{"BLOCK = 64": 'BLOCK = "32 + n % 7"'})
    evaluation = judge.evaluate(kernel)
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "so many builds" in evaluation.message


WRONG = {
    "zeros": "if (i < n) y[i] = 0.0f;",
    "nan": 'if (i < n) y[i] = i == 7 ? __builtin_nanf("") : 2.0f * x[i] + (i > 0 ? x[i - 1] : 0.0f);',
    "writes nothing": "if (n < 0) y[0] = x[0];",
    "writes a part": f"if (i % 2 == 0) {RIGHT}",
    "wrong tail": f"if (i < n / 64 * 64) {{ {RIGHT} }} else if (i < n) y[i] = x[i];",
    "right on one shape only": f"if (n == 64) {RIGHT} else if (i < n) y[i] = 2.0f * x[i];",
    "returns its input": "if (i < n) y[i] = x[i];",
    "half precision": "if (i < n) y[i] = (_Float16)(2.0f * x[i] + (i > 0 ? x[i - 1] : 0.0f));",
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("baseline")
def test_wrong_outputs_are_wrong_results(judge: Judge, make_kernel: Maker, name: str) -> None:
    evaluation = judge.evaluate(make_kernel(body(WRONG[name])))
    assert evaluation.verdict is Verdict.WRONG_RESULT, evaluation
    assert "elements of 'y' are wrong" in evaluation.message
    assert "on shape n=" in evaluation.message
    assert evaluation.speedup is None
    assert not evaluation.timings
    assert not evaluation.checks[-1].passed


def test_evidence_names_shape_distribution_element_and_values(judge: Judge, make_kernel: Maker) -> None:
    code = body("if (i < n) y[i] = i == 70 ? 1e9f : 2.0f * x[i] + (i > 0 ? x[i - 1] : 0.0f);")
    message = judge.evaluate(make_kernel(code)).message
    assert "n=257" in message
    assert "inputs 'normal'" in message or "inputs 'ones'" in message
    assert "1 of 257 elements" in message
    assert "worst y[70]: expected " in message
    assert "got 1e+09" in message


def test_elements_never_written_are_said_to_be_so(judge: Judge, make_kernel: Maker) -> None:
    assert "1 were never written" in judge.evaluate(make_kernel(body(WRONG["writes nothing"]))).message


def test_a_kernel_wrong_on_the_benchmark_shapes_only_is_found(judge: Judge, make_kernel: Maker) -> None:
    code = body(f"if (n != 8192) {{ {RIGHT} }} else if (i < n) y[i] = x[i];")
    evaluation = judge.evaluate(make_kernel(code))
    assert evaluation.verdict is Verdict.WRONG_RESULT
    assert "n=8192" in evaluation.message


def test_a_missing_barrier_is_exposed_by_the_reverse_order(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel(HONEST.replace("__syncthreads();", "")))
    assert evaluation.verdict is Verdict.WRONG_RESULT
    assert "is a barrier missing?" in evaluation.message


def test_module_state_does_not_survive_into_the_next_batch(judge: Judge, make_kernel: Maker) -> None:
    code = "__device__ int runs = 0;\n" + body(f"if (runs > 2000) return; if (i == n - 1) runs += n; {RIGHT}")
    evaluation = judge.evaluate(make_kernel(code))
    assert evaluation.verdict is Verdict.WRONG_RESULT
    assert "never written" in evaluation.message


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param("if (i < n) y[i] = x[i]; *(volatile int*)16 = 1;", Verdict.CRASHED, id="null"),
        pytest.param(f"{RIGHT} if (i == 0) ((float*)x)[0] = 0.0f;", Verdict.CRASHED, id="changes its input"),
        pytest.param(f"{RIGHT} if (i == 0) y[n + 4096] = 1.0f;", Verdict.CRASHED, id="far past the end"),
        pytest.param(f"{RIGHT} if (i == 0) y[-4096] = 1.0f;", Verdict.CRASHED, id="before the start"),
        pytest.param("for (volatile int k = 0; k >= 0; k = 1) {} " + RIGHT, Verdict.TIMEOUT, id="hang"),
        pytest.param("__builtin_trap();", Verdict.CRASHED, id="trap"),
    ],
)
@pytest.mark.usefixtures("baseline")
def test_faults_while_running(judge: Judge, make_kernel: Maker, text: str, verdict: Verdict) -> None:
    evaluation = judge.evaluate(make_kernel(body(text)))
    assert evaluation.verdict is verdict, evaluation.message
    assert "on shape n=" in evaluation.message


def test_a_write_just_past_the_end_is_caught(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel(body(f"{RIGHT} if (i == 0) y[n] = 1.0f;")))
    assert evaluation.verdict in (Verdict.CRASHED, Verdict.WRONG_RESULT)
    assert "y" in evaluation.message


def test_compile_errors_carry_the_candidates_own_line(judge: Judge, make_kernel: Maker) -> None:
    kernel = make_kernel(body("y[i] = undeclared;"))
    line = kernel.source[: kernel.source.index("undeclared")].count("\n") + 1
    evaluation = judge.evaluate(kernel)
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "undeclared" in evaluation.message
    assert str(line) in evaluation.message
    assert evaluation.compile_log


def test_what_compiles_for_the_cpu_only_is_a_compile_error_naming_gfx942(
    judge: Judge, make_kernel: Maker
) -> None:
    code = "#ifdef __AMDGCN__\n#error no GPU please\n#endif\n" + HONEST
    evaluation = judge.evaluate(make_kernel(code))
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "gfx942" in evaluation.message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"n"]', '"x"]', "n"),
        ('"filter"', '"no_such_kernel"', "no_such_kernel"),
        ('["BLOCK"]', "[2000]", "2000"),
        ('"x", "y"', '"x", "z"', "'z'"),
        ('["BLOCK"]\n', '["BLOCK"]\nlds = 70000\n', "65536"),
    ],
)
def test_plans_that_cannot_be_are_invalid(
    judge: Judge, make_kernel: Maker, old: str, new: str, said: str
) -> None:
    evaluation = judge.evaluate(make_kernel(HONEST, **{old: new}))
    assert evaluation.verdict is Verdict.INVALID_PLAN, evaluation.message
    assert said in evaluation.message


def test_static_lds_over_the_limit_does_not_compile(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel(HONEST.replace("tile[BLOCK + 1]", "tile[20000]")))
    assert evaluation.verdict is Verdict.COMPILE_ERROR
    assert "LDS" in evaluation.message


def test_static_and_dynamic_lds_over_the_limit_cannot_be_launched(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel(HONEST, **{'["BLOCK"]\n': '["BLOCK"]\nlds = 65536\n'}))
    assert evaluation.verdict is Verdict.LAUNCH_ERROR
    assert "65796 bytes of LDS" in evaluation.message


def test_host_files_are_rejected(judge: Judge, make_kernel: Maker) -> None:
    evaluation = judge.evaluate(make_kernel('#include "/etc/passwd"\n' + HONEST))
    assert evaluation.verdict is Verdict.REJECTED
    assert "/etc/passwd" in evaluation.message


def test_a_much_slower_kernel_is_cut_short_and_still_accepted(judge: Judge, make_kernel: Maker) -> None:
    slow = "float s = 0.0f; for (int k = 0; k < 500 && i < n; ++k) s += __builtin_sqrtf(x[i] * x[i] + k + s);"
    kernel = make_kernel(body(f"{slow} {RIGHT} if (s < 0.0f) y[0] = s;"))
    evaluation = judge.evaluate(kernel)
    assert evaluation.accepted, evaluation.message
    assert evaluation.speedup is not None
    assert evaluation.speedup.value < 0.1
    assert any("times slower than the baseline" in note for note in evaluation.notes)


def test_a_time_beyond_physics_is_implausible(tmp_path: Path, target: Target, quick: JudgeSettings) -> None:
    problem = write_problem(tmp_path / "impossible", flops="1000000 * n")
    kernel = Kernel.load(problem.default_kernel)
    evaluation = Judge(problem, target, kernel, settings=quick).evaluate(kernel)
    assert evaluation.verdict is Verdict.IMPLAUSIBLE
    with pytest.raises(UsageError, match=r"honest\.hip: its time is impossible"):
        require_accepted(evaluation, kernel.path)


def test_a_wrong_baseline_is_the_users_error(
    filter_problem: Problem, target: Target, quick: JudgeSettings, make_kernel: Maker, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.hip"
    file.write_text(make_kernel(body("if (i < n) y[i] = 0.0f;")).source)
    judge = Judge(filter_problem, target, Kernel.load(file), settings=quick)
    with pytest.raises(UsageError, match=r"wrong\.hip: its result is wrong: on shape n=1") as raised:
        judge.evaluate(make_kernel(HONEST))
    assert "\n" not in str(raised.value)


def test_a_comparison_says_which_is_faster(judge: Judge, make_kernel: Maker) -> None:
    slow = make_kernel(body(f"for (volatile int k = 0; k < 30; k = k + 1) {{}} {RIGHT}"))
    comparison = judge.compare(slow, make_kernel(body(RIGHT)))
    assert comparison.speedup.low > 1.0
    assert comparison.speedup.level == 0.99
    assert comparison.claim.startswith("B is faster than A")
    assert len(comparison.timings) == 2
    assert Comparison.from_dict(json.loads(json.dumps(comparison.to_dict()))) == comparison


def test_a_comparison_with_a_wrong_kernel_claims_nothing(judge: Judge, make_kernel: Maker) -> None:
    comparison = judge.compare(judge.baseline, make_kernel(body("if (i < n) y[i] = 0.0f;")))
    assert comparison.a.accepted
    assert comparison.b.verdict is Verdict.WRONG_RESULT
    assert (comparison.speedup.low, comparison.speedup.high) == (0.0, math.inf)
    assert "no claim" in comparison.claim
    assert Comparison.from_dict(json.loads(json.dumps(comparison.to_dict()))) == comparison


def test_an_evaluation_survives_json(judge: Judge, baseline: Evaluation, make_kernel: Maker) -> None:
    for evaluation in (baseline, judge.evaluate(make_kernel(body("y[i] = undeclared;")))):
        assert Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation


class Shelf:
    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.recorded: list[tuple[str, Evaluation]] = []

    def kernel(self, candidate_id: str) -> Kernel:
        return Kernel.parse(self.texts[candidate_id])

    def record(self, candidate_id: str, evaluation: Evaluation) -> None:
        self.recorded.append((candidate_id, evaluation))


def test_the_tool_evaluates_once_and_records_every_candidate(judge: Judge, make_kernel: Maker) -> None:
    text = make_kernel(body("if (i < n) y[i] = x[i];")).source
    shelf = Shelf({"0001": text, "0002": text, "0003": "no plan"})
    tool = EvaluateKernel(judge, shelf)
    assert tool("0001") is tool("0001")
    assert tool("0002") is tool("0001")
    assert tool("0003").verdict is Verdict.INVALID_PLAN
    assert [candidate for candidate, _ in shelf.recorded] == ["0001", "0002", "0003"]


def test_a_description_holds_verdict_evidence_and_numbers(
    baseline: Evaluation, judge: Judge, make_kernel: Maker
) -> None:
    text = describe(baseline)
    assert text.startswith("verdict: accepted")
    assert "n=8192: " in text
    assert "of the speed of light" in text
    assert "gfx942 filter: " in text
    failed = describe(judge.evaluate(make_kernel(body("if (i < n) y[i] = x[i];"))))
    assert "verdict: wrong_result" in failed
    assert "evidence: on shape n=1" in failed


def test_a_description_is_bounded_and_has_no_control_characters(judge: Judge) -> None:
    error = PlanError("\x1b[31m" + "bad " * 5000)
    text = describe(judge.refuse("text", error))
    assert len(text) <= 6000
    assert "\x1b" not in text
