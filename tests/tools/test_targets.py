"""Targets by name, the speed of light they measure, and the fake one that tests of other rooms use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import cache_home
from kernel_scientist.tools.evaluate import describe
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.judge import Judge, require_accepted
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.peaks import GPU_PEAKS, gpu_roofline
from kernel_scientist.tools.plan import ConstantValue
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets import resolve_target, target_names
from kernel_scientist.tools.targets.cpu import CpuTarget
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget


def script(constants: Mapping[str, ConstantValue]) -> FakeAnswer:
    """Twice the block, half the time; 32 is wrong."""
    block = constants["BLOCK"]
    assert isinstance(block, int)
    if block == 32:
        return FakeAnswer(verdict=Verdict.WRONG_RESULT, message="scripted to be wrong")
    return FakeAnswer(time_us=64000.0 / block)


@pytest.fixture
def fake(filter_problem: Problem) -> Judge:
    return Judge(filter_problem, FakeTarget(script), Kernel.load(filter_problem.default_kernel))


def test_the_fake_target_answers_from_the_constants(fake: Judge) -> None:
    evaluation = fake.evaluate(fake.baseline.with_constants({"BLOCK": 128}))
    assert evaluation.accepted
    assert evaluation.speedup is not None
    assert evaluation.speedup.value == pytest.approx(2.0)
    assert [timing.time_us for timing in evaluation.timings] == [pytest.approx(500.0), pytest.approx(1000.0)]
    assert describe(evaluation).startswith("verdict: accepted")


def test_the_fake_target_fails_as_it_is_told(fake: Judge) -> None:
    evaluation = fake.evaluate(fake.baseline.with_constants({"BLOCK": 32}))
    assert (evaluation.verdict, evaluation.speedup) == (Verdict.WRONG_RESULT, None)
    with pytest.raises(UsageError, match="its result is wrong: scripted to be wrong"):
        require_accepted(evaluation, Path("my.hip"))


def test_the_fake_target_still_checks_plans(fake: Judge) -> None:
    evaluation = fake.evaluate(fake.baseline.with_constants({"BLOCK": 2048}))
    assert evaluation.verdict is Verdict.INVALID_PLAN
    assert "2048" in evaluation.message


def test_the_fake_target_compares(fake: Judge) -> None:
    comparison = fake.compare(fake.baseline, fake.baseline.with_constants({"BLOCK": 256}))
    assert comparison.speedup.value == pytest.approx(4.0)
    assert comparison.speedup.low > 1.0


def test_the_fake_target_cannot_be_chosen_by_name() -> None:
    assert "fake" not in target_names()
    with pytest.raises(UsageError, match="there is no target 'fake'"):
        resolve_target("fake")


def test_auto_is_resolved_to_a_target_that_says_its_name() -> None:
    assert resolve_target("auto").name == "cpu"
    assert "auto" in target_names()


def test_an_unknown_target_is_a_usage_error_naming_the_nearest() -> None:
    with pytest.raises(UsageError, match="no target 'cpuu'; did you mean 'cpu'"):
        resolve_target("cpuu")


def test_the_speed_of_light_is_measured_once_and_kept(target: CpuTarget) -> None:
    first = target.roofline()
    # One core: more than a gigaflop and gigabyte a second, and less than any core built so far.
    assert 1e9 < first.flops_per_s["float32"] < 1e12
    assert all(1e9 < point.bytes_per_s < 1e12 for point in first.bandwidth)
    assert list(cache_home().glob("roofline-*.json"))
    assert CpuTarget().roofline() == first


def test_a_damaged_cache_is_measured_again(target: CpuTarget) -> None:
    target.roofline()
    (path,) = cache_home().glob("roofline-*.json")
    path.write_text('{"bandwidth": [[1')
    assert CpuTarget().roofline().flops_per_s["float32"] > 1e9


def test_the_table_of_gpu_peaks_agrees_with_the_published_bound_of_the_fp8_task() -> None:
    # amd-fp8-mm, m 1024, n 1536, k 7168: 8.63 us on an MI300X by the challenge's own table.
    peak = gpu_roofline("MI300X").peak("float8_e4m3fnuz")
    assert peak is not None
    assert 2 * 1024 * 1536 * 7168 / peak * 1e6 == pytest.approx(8.63, abs=0.01)


# Operations a clock of a compute unit, matrix units included, by the white papers on CDNA 2, 3 and 4.
PER_CLOCK = {
    "gfx90a": {"float64": 256, "float32": 256, "float16": 1024, "bfloat16": 1024, "int8": 1024},
    "gfx942": {
        "float64": 256,
        "float32": 256,
        "float16": 2048,
        "bfloat16": 2048,
        "float8": 4096,
        "int8": 4096,
    },
    "gfx950": {
        "float64": 128,
        "float32": 256,
        "float16": 4096,
        "bfloat16": 4096,
        "float8": 8192,
        "int8": 8192,
    },
}


@pytest.mark.parametrize("name", ["MI300X", "MI300A", "MI325X", "MI350X", "MI355X", "MI250X"])
def test_a_peak_is_units_times_clock_times_operations_a_clock(name: str) -> None:
    peaks = GPU_PEAKS[name]
    assert peaks.tflops.keys() == PER_CLOCK[peaks.arch].keys()
    for dtype, rate in peaks.tflops.items():
        expected = peaks.compute_units * peaks.clock_mhz * 1e6 * PER_CLOCK[peaks.arch][dtype]
        assert rate * 1e12 == pytest.approx(expected, rel=1e-3), dtype
    assert name.lower() in peaks.source


def test_all_cores_at_once_are_an_option_that_says_what_it_measures(
    filter_problem: Problem, quick: JudgeSettings
) -> None:
    target = resolve_target("cpu-all-cores")
    kernel = Kernel.load(filter_problem.default_kernel)
    evaluation = Judge(filter_problem, target, kernel, settings=quick).evaluate(kernel)
    assert evaluation.accepted, evaluation.message
    assert evaluation.target == "cpu-all-cores"
    if len(os.sched_getaffinity(0)) > 1:
        assert "at once" in evaluation.device
        assert any("spreads more" in note for note in evaluation.notes)


def test_a_crash_on_one_of_several_cores_is_the_crash_of_all(
    filter_problem: Problem, quick: JudgeSettings, make_kernel: Callable[..., Kernel]
) -> None:
    target = resolve_target("cpu-all-cores")
    honest = Kernel.load(filter_problem.default_kernel)
    stray = make_kernel(
        "__global__ void filter(const float* x, float* y, int n) { y[n + (1 << 30)] = x[0]; }"
    )
    evaluation = Judge(filter_problem, target, honest, settings=quick).evaluate(stray)
    assert evaluation.verdict is Verdict.CRASHED
