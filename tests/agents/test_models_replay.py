"""A recorded run played back against the judge: the same replies, and a word where the run differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Run
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import Finding, StepFailed
from kernel_scientist.agents.models.scripted import ScriptedModel
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.targets.fake import FakeAnswer

from .conftest import Hold, times
from .openai_server import Refuse, serve
from .test_openai import _request, config, good


def _codes(run: Run) -> list[str]:
    return [one.source for one in run.candidates()]


@pytest.mark.parametrize("what", ["folder", "events"])
def test_a_replay_gives_the_same_candidates_and_costs_nothing(hold: Hold, what: str) -> None:
    with serve(good) as server:
        first = hold(config=config(server.url), generations=2, experiments=2)
    path = first.run.path if what == "folder" else first.run.path / "events.jsonl"
    again = hold(model=f"replay:{path}", generations=2, experiments=2)

    assert _codes(again.run) == _codes(first.run)
    assert again.result.exit_code == 0 and again.result.stop_reason == "all 2 generations are done"
    calls = again.of(ev.ModelCall)
    assert [call.response["content"] for call in calls] == [
        call.response["content"] for call in first.of(ev.ModelCall)
    ]
    assert {call.cost_usd for call in calls} == {0.0}
    assert {call.usage.total_tokens for call in calls} == {110}
    assert not again.of(ev.ErrorRecorded)


def test_measured_figures_alone_are_no_divergence_but_another_verdict_is(hold: Hold) -> None:
    first = hold(generations=2, experiments=1)

    def slower(constants: Any) -> FakeAnswer:
        answer = times(constants)
        assert answer.time_us is not None
        return FakeAnswer(time_us=answer.time_us * 1.37)

    same = hold(model=f"replay:{first.run.path}", script=slower, generations=2, experiments=1)
    assert not same.of(ev.ErrorRecorded)

    def failing(constants: Any) -> FakeAnswer:
        changed = constants["THREAD_M"] > 1 or constants["THREAD_N"] > 1
        return FakeAnswer(verdict=Verdict.WRONG_RESULT, message="c differs") if changed else times(constants)

    other = hold(model=f"replay:{first.run.path}", script=failing, generations=2, experiments=1)
    said = other.of(ev.ErrorRecorded)
    # The Coder is asked to mend what had been right: there is no reply to that, and the rest goes on.
    assert "diverges from the recording" in said[0].message and said[0].recovered
    assert "which has no reply for call 2 of the coder in generation 1" in said[0].message
    assert any("is not the one recorded as [#" in one.message for one in said)
    assert "recorded for another request" in other.result.stop_reason
    assert other.result.exit_code == 3


def test_a_replay_that_runs_out_ends_in_order_and_says_so(hold: Hold) -> None:
    first = hold(generations=1, experiments=1)
    again = hold(model=f"replay:{first.run.path}", generations=5, experiments=1)
    assert again.result.exit_code == 0 and again.result.best is not None
    assert (
        "is used up: it has no reply for call 1 of the selector in generation 2" in again.result.stop_reason
    )


def test_what_failed_for_good_fails_again_and_tries_are_not_repeated(hold: Hold) -> None:
    count = 0

    def flaky(body: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        if count == 1:
            return Refuse(503, "busy")
        coder = _request(body)["request"] == "code"
        return Refuse(400, "no such request") if coder else good(body)

    with serve(flaky) as server:
        first = hold(config=config(server.url), generations=1, experiments=1)
    again = hold(model=f"replay:{first.run.path}", generations=1, experiments=1)
    (failed,) = again.contents(StepFailed)
    assert failed.agent == "coder" and "as in the recording" in failed.reason
    assert len(again.of(ev.ModelCall)) == len(first.of(ev.ModelCall)) - 1


def test_a_reply_can_be_replayed_for_one_agent_alone(hold: Hold) -> None:
    first = hold(generations=1, experiments=1)
    again = hold(
        models={"researcher": f"replay:{first.run.path}"}, model="offline", generations=1, experiments=1
    )
    assert again.run.info.models["researcher"].startswith("replay:")
    assert again.contents(Finding) and again.result.exit_code == 0


def test_what_is_no_recording_is_named(hold: Hold, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a recorded run"):
        hold(model=f"replay:{tmp_path / 'nowhere'}")
    silent = hold(generations=1, model=ScriptedModel(["no"]), config=Config())
    events = silent.run.path / "events.jsonl"
    lines = [line for line in events.read_text().splitlines() if json.loads(line)["kind"] != "model_call"]
    events.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match="no reply of a model"):
        hold(model=f"replay:{silent.run.path}")
