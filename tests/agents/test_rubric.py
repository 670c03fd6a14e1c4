"""What the Coder did of each point of its rubric, and a Coder that says that it cannot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_core.models import LLMMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import CandidateProposal, Finding, StepFailed
from kernel_scientist.agents.models.offline import OfflineModel
from kernel_scientist.agents.models.scripted import Reply, ScriptedModel
from kernel_scientist.agents.requests import BenchmarkRequest, Request
from kernel_scientist.agents.rubric import account_of, told
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.targets.fake import FakeAnswer

from .conftest import Hold

RUBRIC = ("Pad the rows of the tile.", "Load four values at once.", "Unroll the inner loop.")
DONE, CHANGED, LEFT = "done", "changed", "not done"


def statuses(said: object) -> list[str]:
    return [one.status for one in account_of(said, RUBRIC)]


@pytest.mark.parametrize(
    "said",
    [
        [
            {"item": 1, "status": "done"},
            {"item": 2, "status": "changed", "why": "w"},
            {"item": 3, "status": "not done"},
        ],
        [
            {"item": "3", "status": "skipped"},
            {"item": "1", "done": True},
            {"number": 2, "result": "partially"},
        ],
        [
            {"point": RUBRIC[1], "status": "Implemented differently"},
            {"point": "Unroll the inner loop", "status": "left out"},
            {"point": RUBRIC[0], "status": "Implemented"},
        ],
        ["done", "changed: two values only", "not done - no time"],
        ["1. Done", "3) Not done: no need", "2. Changed (two values)"],
        {"1": "done", "2": {"status": "modified", "reason": "r"}, "3": False},
        {RUBRIC[0]: True, RUBRIC[1]: "done, but with two values instead", RUBRIC[2]: "omitted"},
    ],
)
def test_an_account_is_read_from_whatever_form_it_has(said: object) -> None:
    assert statuses(said)[0] == DONE
    assert statuses(said)[2] == LEFT
    assert statuses(said)[1] in (CHANGED, DONE)


@pytest.mark.parametrize(
    "said", [None, "all of it, and well", [], {}, 7, [[1]], [{"item": 9, "status": "done"}]]
)
def test_what_is_no_account_leaves_every_point_not_reported(said: object) -> None:
    points = account_of(said, RUBRIC)
    assert [one.status for one in points] == ["not reported"] * 3
    assert told(points) == "the Coder did not report on the rubric point by point"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_no_value_whatever_stops_the_reader(said: Any) -> None:
    assert [one.item for one in account_of(said, RUBRIC)] == list(RUBRIC)


def coder(account: object) -> ScriptedModel:
    def code(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        assert request.request == "code"
        reply = {"report": "as asked", "rubric": account}
        return f"```json\n{json.dumps(reply)}\n```\n```hip\n{request.base.source}\n// new\n```"

    return ScriptedModel(code)


def test_the_account_is_in_the_message_the_record_the_report_and_what_the_benchmarker_reads(
    hold: Hold,
) -> None:
    asked: list[Request] = []
    offline = OfflineModel()

    def benchmarker(request: Request, messages: Sequence[LLMMessage], tools: Sequence[str]) -> Reply:
        asked.append(request)
        return offline.answer(messages, tools)

    models = {
        "coder": coder([{"item": 1, "status": "changed", "why": "it did not fit"}]),
        "benchmarker": ScriptedModel(benchmarker),
    }
    held = hold(generations=1, experiments=1, models=models)

    (proposal,) = held.contents(CandidateProposal)
    assert proposal.rubric[0].status == "changed" and "it did not fit" in proposal.text
    assert held.run.candidates()[1].rubric == proposal.rubric
    assert isinstance(asked[0], BenchmarkRequest) and asked[0].rubric == proposal.rubric
    assert "it did not fit" in (held.run.path / "candidates" / "0001" / "report.md").read_text()
    assert "points of the rubric done; changed: " in (held.run.path / "report.md").read_text()


def test_a_coder_without_an_account_is_told_of_and_costs_nothing(hold: Hold) -> None:
    held = hold(generations=1, experiments=1, models={"coder": coder("done, all of it")})
    assert held.contents(CandidateProposal)[0].rubric[0].status == "not reported"
    assert "did not report on the rubric" in (held.run.path / "report.md").read_text()
    assert [call.purpose for call in held.of(ev.ModelCall) if call.agent == "coder"] == ["code"]


def test_the_offline_coder_gives_a_failed_candidate_up_at_once_and_a_finding_is_written(hold: Hold) -> None:
    first = iter([FakeAnswer()])

    def script(constants: dict[str, Any]) -> FakeAnswer:
        refused = FakeAnswer(verdict=Verdict.LAUNCH_ERROR, message="too much LDS")
        return next(first, refused)

    held = hold(generations=1, experiments=2, script=script)

    gave_up = held.contents(StepFailed)
    assert [one.gave_up for one in gave_up] == [True, True]
    assert all("sets constants only" in one.text for one in gave_up)
    coding = [call.purpose for call in held.of(ev.ModelCall) if call.agent == "coder"]
    assert coding == ["code"] * 4, "no repair turn"
    findings = held.contents(Finding)
    assert [(one.verdict, one.author) for one in findings] == [("launch_error", "model")] * 2
    assert not [one for one in held.of(ev.ErrorRecorded) if one.where == "coder"]


def test_an_experiment_that_cannot_be_done_is_passed_over(hold: Hold) -> None:
    models = {"coder": ScriptedModel(['```json\n{"give_up": "There is no such instruction."}\n```'])}
    held = hold(generations=1, experiments=2, models=models)
    assert [one.reason for one in held.contents(StepFailed)] == ["There is no such instruction."] * 2
    assert not held.contents(Finding) and held.result.exit_code == 3
