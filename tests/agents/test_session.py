"""Whole sessions with the offline model on scripted times."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernel_scientist.agents import Config, Limits, Run, Session, list_runs
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import Finding, Hypotheses, Selection, StepFailed
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.evaluation import Evaluation, Verdict
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem, list_problems
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Hold, Shelf


def test_an_offline_session_finds_and_confirms_a_faster_kernel(hold: Hold) -> None:
    held = hold(generations=4, experiments=3)

    result = held.result
    assert (result.status, result.exit_code) == ("improved", 0)
    assert result.best is not None and result.best.speedup.low > 3
    assert result.best.comparison is not None
    assert result.best.path.read_text() == held.run.best.source  # type: ignore[union-attr]


def test_the_agents_speak_in_the_order_of_the_method(hold: Hold) -> None:
    held = hold(generations=2, experiments=2)

    spoken = [event.agent for event in held.of(ev.MessageSent)]
    one = ["selector", "researcher", "coder", "benchmarker", "coder", "benchmarker"]
    assert spoken == one + one


def test_the_three_experiments_are_distinct_and_chosen_by_the_three_criteria(hold: Hold) -> None:
    plan: Hypotheses = hold(generations=1).contents(Hypotheses)[0]

    assert len(plan.experiments) == 5
    assert [choice.criterion for choice in plan.chosen] == [
        "most innovative",
        "highest maximum",
        "highest minimum",
    ]
    assert len({choice.experiment for choice in plan.chosen}) == 3
    first = plan.experiments[plan.chosen[0].experiment]
    assert first.innovation == max(one.innovation for one in plan.experiments)


def test_citations_name_passages_that_were_shown(hold: Hold) -> None:
    held = hold(generations=1)

    shown = {passage.id for event in held.of(ev.PassagesRetrieved) for passage in event.passages}
    cited = {name for plan in held.contents(Hypotheses) for one in plan.experiments for name in one.citations}
    assert cited and cited <= shown
    assert len(held.shelf.queries) > 1, "the Researcher's model searches besides the first look-up"
    assert held.of(ev.ToolCall)[0].tool == "search_literature"


def test_every_candidate_is_evaluated_by_a_tool_call_of_the_model(hold: Hold) -> None:
    held = hold(generations=1)

    calls = [event for event in held.of(ev.ToolCall) if event.tool == "evaluate_kernel"]
    assert [event.called_by for event in calls] == ["model"] * 3
    assert [json.loads(event.result)["candidate_id"] for event in calls] == ["0001", "0002", "0003"]


def test_the_run_folder_tells_the_same_as_the_observer(hold: Hold) -> None:
    held = hold(generations=2)

    run = Run.open("last", runs_dir=held.run.path.parent)
    assert list(run.events()) == held.events
    assert [event.seq for event in held.events] == list(range(1, len(held.events) + 1))
    assert run.info.status == "improved" and run.info.totals.evaluations == 6
    candidates = run.candidates()
    assert [one.id for one in candidates] == [f"{number:04d}" for number in range(7)]
    for one in candidates[1:]:
        assert one.experiment is not None and one.finding is not None and one.diff.startswith("---")
        stored = json.loads((one.path.parent / "evaluation.json").read_text())
        assert Evaluation.from_dict(stored) == one.evaluation
    assert (run.path / "best" / "comparison.json").is_file()


def test_every_number_an_agent_says_about_a_measurement_is_in_an_event_before_it(hold: Hold) -> None:
    held = hold(generations=2)

    speedups: dict[str, float] = {}
    for event in held.events:
        match event:
            case ev.EvaluationFinished():
                assert event.evaluation.speedup is not None
                speedups[event.candidate_id] = event.evaluation.speedup.value
            case ev.MessageSent(content=Finding() as finding):
                assert finding.speedup == speedups[finding.candidate_id]
            case ev.MessageSent(content=Selection() as selection):
                numbers = re.findall(r"\((\d+\.\d+)x", selection.reasons)
                known = {f"{value:.2f}" for value in speedups.values()}
                assert numbers and set(numbers) <= known
            case _:
                pass


def test_predictions_are_compared_with_what_was_measured(hold: Hold) -> None:
    for finding in hold(generations=2).contents(Finding):
        low, high = finding.predicted_min, finding.predicted_max
        expected = (
            "below"
            if finding.measured_uplift < low
            else "above"
            if finding.measured_uplift > high
            else "within"
        )
        assert finding.calibration == expected


def test_a_kernel_that_cannot_be_made_faster_ends_with_exit_code_3(hold: Hold) -> None:
    result = hold(script=lambda constants: FakeAnswer(), generations=2).result
    assert (result.status, result.exit_code, result.best) == ("not_improved", 3, None)
    assert result.stop_reason == "all 2 generations are done"


def test_a_claim_that_fresh_measurements_do_not_bear_out_is_not_made(hold: Hold) -> None:
    """Winner's curse: fast while searching, not faster in the confirming pairs."""
    asked: dict[str, int] = {}

    def lucky_once(constants: dict[str, object]) -> FakeAnswer:
        key = str(sorted(constants.items()))
        asked[key] = asked.get(key, 0) + 1
        start = constants["THREAD_N"] == 1 and constants["THREAD_M"] == 1 and constants["TILE_M"] == 16
        return FakeAnswer(time_us=500.0 if asked[key] == 1 and not start else 1000.0)

    held = hold(script=lucky_once, generations=1)
    assert held.of(ev.BestChanged), "it did lead while searching"
    assert (held.result.status, held.result.best) == ("not_improved", None)
    assert [event.improved for event in held.of(ev.ComparisonFinished)] == [False, False, False]


def test_without_tunables_the_session_ends_with_the_sentence_that_says_so(hold: Hold, tmp_path: Path) -> None:
    text = Problem.load("matmul").default_kernel.read_text()
    start, end = text.index("[tune]"), text.index("[[launch]]")
    fixed = tmp_path / "fixed.hip"
    fixed.write_text(text[:start] + text[end:])

    result = hold(kernel=fixed).result
    assert (result.status, result.exit_code) == ("not_improved", 3)
    assert result.stop_reason.startswith("There is nothing to tune: the kernel has no [tune] table")


def test_a_failing_candidate_is_a_finding_and_the_session_goes_on(hold: Hold) -> None:
    def script(constants: dict[str, object]) -> FakeAnswer:
        if constants["THREAD_N"] != 1:
            return FakeAnswer(verdict=Verdict.COMPILE_ERROR, message="kernel.hip:9: error: no such thing")
        return FakeAnswer(time_us=1000.0 / float(constants["THREAD_M"]))  # type: ignore[arg-type]

    held = hold(script=script, generations=4)
    failed = [one for one in held.run.candidates() if one.status == "failed"]
    assert failed and failed[0].verdict == "compile_error"
    assert held.result.status == "improved"


def test_the_starting_kernel_s_own_fault_is_a_usage_error_and_leaves_no_run(
    hold: Hold, tmp_path: Path
) -> None:
    wrong = FakeAnswer(verdict=Verdict.WRONG_RESULT, message="c differs at 0")
    with pytest.raises(UsageError, match=r"tiled\.hip"):
        hold(script=lambda constants: wrong)
    assert list_runs(tmp_path / "runs") == []
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(
    ("limits", "which"),
    [
        (Limits(max_evaluations=3), "max_evaluations"),
        (Limits(max_tokens=20_000), "max_tokens"),
        (Limits(max_time_s=1e-9), "max_time_s"),
    ],
)
def test_a_limit_ends_the_session_with_exit_code_4(hold: Hold, limits: Limits, which: str) -> None:
    held = hold(generations=50, limits=limits)

    (reached,) = held.of(ev.LimitReached)
    assert reached.limit == which and which in held.result.stop_reason
    assert (held.result.status, held.result.exit_code) == ("limit", 4)
    totals = held.run.info.totals
    if limits.max_evaluations is not None:
        assert totals.evaluations == limits.max_evaluations
    if limits.max_tokens is not None:
        calls = [event.usage.total_tokens for event in held.of(ev.ModelCall)]
        assert sum(calls) >= limits.max_tokens > sum(calls[:-1]), "within one call of the limit"


def test_a_cost_limit_with_a_free_model_needs_no_price(hold: Hold) -> None:
    result = hold(generations=1, limits=Limits(max_cost_usd=1.0)).result
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problem": "matmull"}, "matmul"),
        ({"problem": "matmul", "kernel": "no/such.hip"}, "no/such.hip"),
        ({"problem": "matmul", "model": "offlin"}, "offline"),
        ({"problem": "matmul", "model": "gpt-5"}, "OPENAI_API_KEY"),
        ({"problem": "matmul", "model": "openai:"}, "openai:NAME"),
        ({"problem": "matmul", "models": {"codr": "offline"}}, "codr"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_nothing_is_written(
    arguments: dict[str, object], said: str, tmp_path: Path
) -> None:
    session = Session(  # type: ignore[arg-type]
        **arguments,
        target=FakeTarget(lambda constants: FakeAnswer()),
        knowledge=Shelf(),
        runs_dir=tmp_path / "runs",
        config=Config(),
    )
    with pytest.raises(UsageError, match=re.escape(said)):
        session.run()
    assert not (tmp_path / "runs").exists()


def test_a_runs_folder_that_cannot_be_written_is_a_usage_error(hold: Hold, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(UsageError, match="run folder"):
        hold()


@pytest.mark.slow
def test_prompts_do_not_grow_with_the_generations(hold: Hold) -> None:
    held = hold(generations=12, experiments=3)

    tokens: dict[int, int] = {}
    for event in held.of(ev.ModelCall):
        if event.agent == "selector":
            tokens[event.generation] = event.usage.prompt_tokens
    assert tokens[12] < 1.3 * tokens[9]


@pytest.mark.parametrize(
    ("problem", "kernel"),
    [(name, kernel) for name in list_problems() for kernel in Problem.load(name).kernels],
)
def test_every_bundled_kernel_with_tunables_can_be_moved_by_the_offline_model(
    hold: Hold, problem: str, kernel: str
) -> None:
    held = hold(problem, script=lambda constants: FakeAnswer(), kernel=kernel, generations=1)

    tunable = any(
        len(values) > 1 for values in Kernel.load(Problem.load(problem).kernels[kernel]).plan.tune.values()
    )
    verdicts = [one.verdict for one in held.run.candidates()[1:]]
    assert verdicts == ["accepted"] * len(verdicts), [one.evaluation for one in held.run.candidates()]
    assert bool(verdicts) == tunable
    assert not held.contents(StepFailed)
