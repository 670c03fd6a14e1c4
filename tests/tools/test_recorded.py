"""Recorded search spaces: files of both layouts, and the target that plays them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.recorded_problem import parameters_of
from kernel_scientist.tools.recording import load_recording
from kernel_scientist.tools.statistics import median_interval
from kernel_scientist.tools.targets import resolve_target
from kernel_scientist.tools.targets.recorded import RecordedTarget

from .recordings import cache_document, t4_document, write_recording


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "home"))


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    target = resolve_target(f"recorded:{write_recording(tmp_path / 'toy.json', cache_document())}")
    assert isinstance(target, RecordedTarget)
    problem = target.problem()
    return Judge(problem, target, Kernel.load(problem.default_kernel))


@pytest.mark.parametrize("name", ["toy.json", "toy.json.gz"])
def test_a_cache_file_is_read_packed_or_not(name: str, tmp_path: Path) -> None:
    recording = load_recording(write_recording(tmp_path / name, cache_document()))

    assert (recording.device, recording.kernel, recording.size) == ("Some GPU", "toy", ("1024", "512"))
    assert recording.values == {"block": (32, 64), "layout": ("row", "column"), "unroll": (1, 2)}
    assert {point: row.verdict for point, row in recording.rows.items()} == {
        (32, "row", 1): Verdict.ACCEPTED,
        (64, "row", 1): Verdict.ACCEPTED,
        (64, "column", 1): Verdict.ACCEPTED,
        (32, "column", 1): Verdict.ACCEPTED,
        (32, "column", 2): Verdict.LAUNCH_ERROR,
        (64, "column", 2): Verdict.COMPILE_ERROR,
        (32, "row", 2): Verdict.INVALID_PLAN,
    }
    assert recording.rows[(64, "row", 1)].time_ms == 2.0
    assert not recording.unfinished


@pytest.mark.parametrize("end", ["}}", "", ",", ",\n", ',\n"32,row,2": {"block": 3'])
def test_a_cache_file_whose_writer_was_killed_is_read_as_far_as_it_goes(end: str, tmp_path: Path) -> None:
    lines = [f'"{name}": {json.dumps(row)}' for name, row in cache_document()["cache"].items()]
    head = json.dumps(cache_document(cache={}))[:-2]
    file = tmp_path / "open.json"
    file.write_text(head + "\n" + ",\n".join(lines) + end)

    recording = load_recording(file)
    assert len(recording.rows) == 7
    assert recording.unfinished == (end != "}}")


def test_a_t4_file_says_why_a_configuration_failed_and_in_what_unit_it_was_timed(tmp_path: Path) -> None:
    recording = load_recording(write_recording(tmp_path / "t4.json", t4_document()))

    assert [row.verdict.value for row in recording.rows.values()] == [
        "accepted",
        "timeout",
        "compile_error",
        "launch_error",
        "wrong_result",
        "invalid_plan",
        "launch_error",
        "crashed",
    ]
    assert recording.rows[(0, 1)].time_ms == 2.0
    seconds = t4_document() | {"metadata": {"timeunit": "seconds"}}
    slower = load_recording(write_recording(tmp_path / "s.json", seconds))
    assert slower.rows[(0, 1)].time_ms == 2000.0


def _without(name: str) -> dict[str, Any]:
    document = cache_document()
    del document[name]
    return document


def _row(**changes: object) -> dict[str, Any]:
    document = cache_document()
    document["cache"]["32,row,1"].update(changes)
    return document


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([1, 2], "is not a JSON object"),
        ({"a": 1}, "has neither 'cache'"),
        (_without("tune_params_keys"), "'tune_params_keys' is not a list of names"),
        (_without("tune_params"), "'tune_params' and 'cache' must be objects"),
        (cache_document(tune_params_keys=["block", "block"]), "names a parameter twice"),
        (
            cache_document(tune_params={"block": [32, 64], "layout": ["row", "column"]}),
            "'tune_params.unroll'",
        ),
        (cache_document(cache={}), "none of its 0 configurations has a time"),
        (_row(block=7), "a row has block = 7, which 'tune_params' does not list"),
        (_row(block=64), "an earlier row has"),
        (_row(block=[1]), "row '32,row,1' has a value that is neither a number nor a word"),
        (_row(time=None, times=None), "row '32,row,1' has no time, and no failure either"),
        (_row(block=10**400), "row '32,row,1' has a value that is neither a number nor a word"),
        (_row(times=[1.0, 0.0]), "row '32,row,1' has a time of 0 ms"),
        (t4_document() | {"metadata": {"timeunit": "fortnights"}}, "'fortnights' is not known"),
        ({"results": [{"configuration": {}}]}, "result 1 has no configuration"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_in_a_sentence(
    document: object, said: str, tmp_path: Path
) -> None:
    file = write_recording(tmp_path / "bad.json", document)
    with pytest.raises(UsageError) as caught:
        load_recording(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ") and said in message and "\n" not in message


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON: line 1"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"\x1f\x8b\x08\x00broken", "its gzip data is damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"cache": {"a": 1,}}x', "is not JSON: line 1, column"),
        (b'{"cache": ' + b"9" * 5000 + b"}", "a number of thousands of digits"),
    ],
)
def test_bytes_that_are_no_json_are_refused_in_a_sentence(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(data)
    with pytest.raises(UsageError, match=said):
        load_recording(tmp_path / "bad.json")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["cache", "results", "tune_params", "tune_params_keys", "metadata", "objective"]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.just("time"),
            lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=4), one, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_no_document_whatever_ends_in_anything_but_a_sentence(tmp_path: Path, document: object) -> None:
    file = write_recording(tmp_path / "any.json", document)
    with pytest.raises(UsageError, match=r"any\.json"):
        load_recording(file)


def test_the_kernel_of_a_recording_starts_at_its_median_and_lists_its_values(judge: Judge) -> None:
    plan = judge.baseline.plan
    assert plan.constants == {"block": 32, "layout": 1, "unroll": 1}
    assert plan.tune == {"block": (32, 64), "layout": (0, 1), "unroll": (1, 2)}
    assert "layout, 0 = row, 1 = column" in judge.baseline.source
    assert judge.problem.name == "toy"


def test_an_evaluation_is_the_recording_s_and_says_so(judge: Judge) -> None:
    evaluation = judge.evaluate(judge.baseline.with_constants({"block": 64, "layout": 1}))

    assert evaluation.accepted
    assert evaluation.speedup is not None
    assert (evaluation.speedup.value, evaluation.speedup.low) == (3.0, pytest.approx(3.0 / 1.1))
    assert evaluation.speedup.level == pytest.approx(1 - 2 * 2**-6)
    (timing,) = evaluation.timings
    assert (timing.time_us, timing.batches, timing.shape) == (1000.0, 7, {"size_0": 1024, "size_1": 512})
    assert evaluation.device == "Some GPU (times recorded in toy.json, not measured here)"
    assert "nothing was compiled, run or checked here" in evaluation.notes[0]
    comparison = judge.compare(judge.baseline, judge.baseline.with_constants({"block": 64}))
    assert comparison.speedup == evaluation.speedup and "not measured again" in comparison.claim


@pytest.mark.parametrize(
    ("constants", "verdict", "said"),
    [
        ({"unroll": 2}, "launch_error", "RuntimeFailedConfig"),
        ({"unroll": 2, "block": 64}, "compile_error", "CompilationFailedConfig"),
        ({"layout": 0, "unroll": 2}, "invalid_plan", "InvalidConfig"),
        ({"block": 64, "layout": 0, "unroll": 2}, "invalid_plan", "the nearest that it has is"),
        ({"block": 33}, "invalid_plan", "no such value of block"),
        ({"layout": 5}, "invalid_plan", "no such value of layout"),
    ],
)
def test_a_configuration_without_a_time_is_the_matching_verdict(
    judge: Judge, constants: dict[str, int], verdict: str, said: str
) -> None:
    evaluation = judge.evaluate(judge.baseline.with_constants(constants))
    assert (evaluation.verdict.value, evaluation.speedup, evaluation.timings) == (verdict, None, ())
    assert said in evaluation.message


def test_a_kernel_that_differs_in_more_than_constants_is_rejected(judge: Judge) -> None:
    changed = Kernel.parse(judge.baseline.source.replace("*result = 0;", "*result = 1;"))
    assert judge.evaluate(changed).verdict is Verdict.REJECTED
    other = Kernel.parse(judge.baseline.source.replace("block = 32\n", "block = 32\nmore = 1\n", 1))
    assert judge.evaluate(other).verdict is Verdict.INVALID_PLAN


def test_another_problem_is_refused(tmp_path: Path) -> None:
    target = RecordedTarget(write_recording(tmp_path / "toy.json", cache_document()))
    matmul = Problem.load("matmul")
    with pytest.raises(UsageError, match="problem 'matmul' is not what"):
        Judge(matmul, target, Kernel.load(matmul.default_kernel))


def test_a_recording_without_repeats_claims_no_certainty(tmp_path: Path) -> None:
    document = cache_document()
    for row in document["cache"].values():
        row.pop("times", None)
    target = RecordedTarget(write_recording(tmp_path / "toy.json", document))
    problem = target.problem()
    judge = Judge(problem, target, Kernel.load(problem.default_kernel))

    evaluation = judge.evaluate(judge.baseline.with_constants({"block": 64}))
    assert evaluation.speedup is not None and evaluation.speedup.level == 0.0
    assert any("repeats no measurement" in note for note in evaluation.notes)


@pytest.mark.parametrize("names", [("double", "a b", "a_b"), ("9", "ks_x", "size_0"), ("result", "min", "é")])
def test_parameters_of_any_name_become_constants(names: tuple[str, ...], tmp_path: Path) -> None:
    document = cache_document(tune_params_keys=list(names))
    old = list(document["tune_params"])
    document["tune_params"] = dict(zip(names, document["tune_params"].values(), strict=True))
    for row in document["cache"].values():
        row.update({new: row.pop(one) for one, new in zip(old, names, strict=True)})
    target = RecordedTarget(write_recording(tmp_path / "odd.json", document))

    constants = [one.constant for one in parameters_of(target.recording)]
    assert len(set(constants)) == 3
    problem = target.problem()
    assert list(Kernel.load(problem.default_kernel).plan.constants) == constants


def test_text_of_the_file_cannot_break_out_of_the_kernel_s_comments(tmp_path: Path) -> None:
    hostile = 'GPU */ "\n#error \\\x1b[31m\u202e'
    document = cache_document(device_name=hostile, kernel_name=hostile, problem_size=[hostile])
    target = RecordedTarget(write_recording(tmp_path / "hostile.json", document))

    problem = target.problem()
    source = Kernel.load(problem.default_kernel).source
    assert "\n#error" not in source and "\x1b" not in source
    assert "\x1b" not in target.device + problem.title + problem.description


def test_a_space_too_large_for_a_plan_is_refused_in_a_sentence(tmp_path: Path) -> None:
    document = cache_document()
    document["tune_params"]["unroll"] = list(range(20_000))
    target = RecordedTarget(write_recording(tmp_path / "large.json", document))
    with pytest.raises(KernelScientistError, match=r"large\.json: cannot be searched here"):
        target.problem()


@pytest.mark.parametrize(
    ("count", "low", "level"), [(1, 0, 0.0), (3, 0, 0.75), (7, 0, 0.984375), (32, 8, 0.99)]
)
def test_the_interval_of_a_median_is_of_order_statistics(count: int, low: int, level: float) -> None:
    """For 32 values Hollander and Wolfe's table gives the 9th and the 24th at 99 %."""
    got = median_interval([float(value) for value in range(count)], 0.99)
    assert (got.low, got.high) == (low, count - 1 - low)
    assert got.level >= level
