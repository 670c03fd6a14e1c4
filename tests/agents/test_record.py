"""What a run learns of its strategies and predictions, its headroom, and that prompts stay small."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_core.models import LLMMessage

from kernel_scientist.agents import Config
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.cli.learnt import learnt_lines, learnt_values
from kernel_scientist.agents.config import SearchConfig
from kernel_scientist.agents.digest import TOKENS, digest_of
from kernel_scientist.agents.messages import Finding
from kernel_scientist.agents.models.scripted import Reply, ScriptedModel
from kernel_scientist.agents.policies.headroom import focus_of, light_share, no_headroom
from kernel_scientist.agents.policies.record import calibration_of, strategy_records
from kernel_scientist.agents.policies.strategy import STRATEGIES
from kernel_scientist.agents.population import Population
from kernel_scientist.agents.requests import Request, ResearchRequest, find_request
from kernel_scientist.agents.views import ROWS, population_rows, strategy_views, tuning_of
from kernel_scientist.knowledge.tokens import count_tokens
from kernel_scientist.tools.evaluation import Evaluation, ShapeTiming, Verdict
from kernel_scientist.tools.targets.fake import FakeAnswer

from .conftest import Held, Hold
from .test_policies import BASELINE, add, evaluation


def finding(candidate: str, measured: float | None, low: float = 0, high: float = 10) -> Finding:
    mark = "not measured"
    if measured is not None:
        mark = "below" if measured < low else "above" if measured > high else "within"
    return Finding(
        candidate_id=candidate, slot=0, verdict="accepted" if measured is not None else "compile_error",
        tried="t", happened="h", predicted_min=low, predicted_max=high, measured_uplift=measured,
        calibration=mark,  # type: ignore[arg-type]
    )  # fmt: skip


def prompts(held: Held, purpose: str) -> list[tuple[int, str]]:
    """Generation and text of each request that was put to a model."""
    calls = [call for call in held.of(ev.ModelCall) if call.purpose == purpose]
    texts = [(call.generation, str(one["content"])) for call in calls for one in call.request]
    return [(generation, text) for generation, text in texts if find_request(text) is not None]


@pytest.fixture
def population() -> Population:
    made = Population(BASELINE)
    made.record("0000", evaluation(1.0))
    for strategy, measured in [
        ("tiling", 20.0), ("tiling", 4.0), ("tiling", None), ("MFMA", -30.0), ("fusion", None),
    ]:  # fmt: skip
        member = add(made, evaluation(1.2) if measured is not None else None, strategy=strategy)
        member.finding = finding(member.id, measured)
    return made


def test_a_strategy_s_record_tells_what_was_tried_and_what_came_of_it(population: Population) -> None:
    records = {one.strategy: one for one in strategy_records(population)}
    tiling = records["tiling"]
    assert (tiling.tried, tiling.accepted, tiling.median_uplift) == (3, 2, 12.0)
    assert (tiling.best_uplift, tiling.best_id) == (20.0, "0001")
    assert records["fusion"].median_uplift is None and records["fusion"].calibration is None
    assert [one.strategy for one in strategy_records(population)] == ["tiling", "MFMA", "fusion"]


def test_calibration_is_coverage_and_bias(population: Population) -> None:
    held = calibration_of(one.finding for one in population if one.finding is not None)
    assert held is not None
    assert (held.measured, held.below, held.within, held.above) == (3, 1, 1, 1)
    assert held.coverage == pytest.approx(1 / 3) and held.bias == -1.0
    assert "1 of 3 predicted ranges held the measured uplift (33 %)" in str(held)
    assert calibration_of([]) is None


def test_the_user_and_the_researcher_are_shown_the_same_record(hold: Hold) -> None:
    held = hold(generations=3)
    candidates = held.run.candidates()
    values = learnt_values(candidates)
    tried = sum(one["tried"] for one in values["strategies"])
    assert tried == len(held.contents(Finding)) == 9
    assert values["calibration"]["measured"] == 9 and json.dumps(values)
    lines = "\n".join(learnt_lines(candidates))
    assert all(one["strategy"] in lines for one in values["strategies"])
    assert "predictions: " in lines and learnt_lines([]) == []

    request = find_request(prompts(held, "research")[-1][1])
    assert isinstance(request, ResearchRequest)
    assert sum(one.tried for one in request.strategies) == 6, "of the two generations before it"
    assert request.strategy_names == STRATEGIES
    assert request.calibration.startswith("So far ") and "of 6 predicted ranges" in request.calibration


def test_digest_lines_name_the_event_that_holds_the_judge_s_figures(hold: Hold) -> None:
    held = hold(generations=2)
    request = find_request(prompts(held, "research")[-1][1])
    assert isinstance(request, ResearchRequest) and request.digest
    judged = {e.seq: e.candidate_id for e in held.of(ev.EvaluationFinished)}
    for line in request.digest:
        assert line.event is not None and judged[line.event] == line.candidate_id


def test_a_digest_of_many_wordy_experiments_stays_within_its_tokens() -> None:
    made = Population(BASELINE)
    made.record("0000", evaluation(1.0))
    for number in range(150):
        passed = number % 3 > 0
        member = add(made, evaluation(1.0 + number / 100), strategy=STRATEGIES[number % len(STRATEGIES)])
        assert member.experiment is not None
        wordy = f"{number} 日本語 " * 200
        member.experiment = member.experiment.model_copy(update={"description": wordy})
        member.finding = finding(member.id, 3.0).model_copy(update={"next": wordy})
        if not passed:
            made.record(member.id, Evaluation(Verdict.CRASHED, wordy, "screen", "f", "f", "none", "b", "k"))
    digest = digest_of(made)
    assert len(digest) >= 3
    assert sum(count_tokens(one.model_dump_json(exclude_none=True)) for one in digest) <= TOKENS
    assert made.accepted()[0].id in {one.candidate_id for one in digest}, "the best is never left out"
    tuning = tuning_of(made.baseline, made)
    assert tuning is not None and len(tuning.tried) == 1, "the same values are told once"
    assert len(population_rows(made)) <= ROWS and len(strategy_views(made)) <= len(STRATEGIES)


def bounded(*shares: float) -> Evaluation:
    timings = tuple(
        ShapeTiming({"m": 64 * n}, 100.0, 99.0, 101.0, 3, 1, bound_us=100.0 * share, bound_by="flops")
        for n, share in enumerate(shares, start=1)
    )
    return Evaluation(Verdict.ACCEPTED, "", "screen", "f", "f", "none", "b", "k", timings=timings)


def test_headroom_is_told_shape_by_shape_and_ends_the_run_when_it_is_used_up() -> None:
    made = Population(BASELINE)
    made.record("0000", bounded(0.99, 0.2))
    text = focus_of(made.baseline, SearchConfig())
    assert text.startswith("Share of the speed of light, most left first: m=128 at 20 % (bound by flops).")
    assert text.endswith("Not worth more effort, near the bound: m=64.")
    assert light_share(bounded(0.5, 0.5).timings) == pytest.approx(0.5)
    assert no_headroom(made, SearchConfig()) is None
    made.record("0000", bounded(0.99, 0.97))
    reason = no_headroom(made, SearchConfig())
    assert reason is not None and "candidate 0000 runs at 98 % of the speed of light" in reason
    made.record("0000", evaluation(1.0))
    assert (no_headroom(made, SearchConfig()), focus_of(made.baseline, SearchConfig())) == (None, "")


def test_a_session_stops_near_the_speed_of_light_and_says_so(hold: Hold) -> None:
    def script(constants: Any) -> FakeAnswer:
        return FakeAnswer(time_us=100.0 if constants["THREAD_N"] == 1 else 10.0, bound_us=9.9)

    held = hold(generations=9, experiments=1, script=script, config=Config(seed=1))
    assert held.result.exit_code == 0
    reason = held.result.stop_reason
    assert "% of the speed of light (search.enough_light 0.95): little is left to gain" in reason
    assert len(held.of(ev.GenerationStarted)) < 9
    other = hold(
        generations=3, experiments=1, script=script, config=Config(search=SearchConfig(enough_light=2.0))
    )
    assert other.result.stop_reason == "all 3 generations are done"


def coder(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
    """Renumbers the bound of a harmless check, so that every candidate is a program of its own."""
    assert request.request == "code"
    place = "const int thread ="
    check = f"if (m < -{request.generation}) return;\n  {place}"
    source = re.sub(rf"(if \(m < -\d+\) return;\n  )?{place}", check, request.base.source)
    words = "An explanation that goes on for a while. " * 40
    return f"```json\n{json.dumps({'report': words})}\n```\n```hip\n{source}\n```"


@pytest.mark.slow
def test_requests_stay_within_their_tokens_over_200_generations(hold: Hold) -> None:
    """A talkative model, every generation something new: what each agent is asked does not grow."""

    def researcher(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        words = f"Idea {request.generation}: set ALPHA = {request.generation}. " + "Because it is so. " * 60
        experiment = {
            "description": words, "rubric": [words], "strategy": STRATEGIES[request.generation % 15],
            "uplift_min": 1, "uplift_max": 5, "innovation": 50,
        }  # fmt: skip
        return f"```json\n{json.dumps({'experiments': [experiment]})}\n```"

    def benchmarker(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        words = "It went as it went, for reasons that take long to tell. " * 20
        return f"```json\n{json.dumps({'tried': words, 'happened': words, 'next': words})}\n```"

    held = hold(
        generations=200, experiments=1, policy="greedy",
        models={
            "researcher": ScriptedModel(researcher), "coder": ScriptedModel(coder),
            "benchmarker": ScriptedModel(benchmarker),
        },
    )  # fmt: skip
    assert held.run.info.totals.evaluations == 200
    for purpose in ("research", "code", "benchmark"):
        asked = dict(prompts(held, purpose))
        assert count_tokens(asked[200]) < 1.15 * count_tokens(asked[60]), purpose
