"""How many avenues and experiments there are: too few are asked for once more, too many are counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel_scientist.agents import Config
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.messages import Hypotheses
from kernel_scientist.agents.models.scripted import Reply, ScriptedModel

from .conftest import Held, Hold


def plan(avenues: int, experiments: int, **more: Any) -> str:
    made = [
        {"description": f"idea {n}", "rubric": ["r"], "uplift_min": 1, "uplift_max": 9 - n, "innovation": n}
        for n in range(experiments)
    ]
    value = {"avenues": [{"title": f"way {n}"} for n in range(avenues)], "experiments": made, **more}
    return f"```json\n{json.dumps(value)}\n```"


def researched(hold: Hold, *replies: Reply, **arguments: Any) -> tuple[Held, Hypotheses, list[ev.ModelCall]]:
    held = hold(generations=1, experiments=1, models={"researcher": ScriptedModel(replies)}, **arguments)
    (said,) = held.contents(Hypotheses)
    return held, said, [call for call in held.of(ev.ModelCall) if call.agent == "researcher"]


def test_enough_of_both_is_asked_for_once(hold: Hold) -> None:
    _, said, calls = researched(hold, plan(10, 5))
    assert [call.purpose for call in calls] == ["research"] and said.counts == ""


def test_what_is_missing_is_named_and_asked_for_once(hold: Hold) -> None:
    held, said, calls = researched(hold, plan(3, 2), plan(10, 5))
    assert [call.purpose for call in calls] == ["research", "research, repair 1"]
    assert "7 of 10 avenues are missing and 3 of 5 experiments are missing" in str(calls[1].request)
    assert (len(said.avenues), len(said.experiments), said.counts) == (10, 5, "")
    assert "could not be used" not in held.result.stop_reason


@pytest.mark.parametrize("second", [plan(3, 2), plan(1, 1), "no JSON", ""])
def test_then_the_fuller_answer_is_taken_as_it_is_and_this_is_said(hold: Hold, second: str) -> None:
    held, said, calls = researched(hold, plan(3, 2), second)
    assert len(calls) == (2 if "json" in second else 3)
    assert (len(said.avenues), len(said.experiments)) == (3, 2)
    assert "10 avenues and 5 experiments were asked for" in said.text
    assert said.chosen and held.run.info.status == "not_improved"


def test_a_reason_for_fewer_is_taken(hold: Hold) -> None:
    _, said, calls = researched(hold, plan(3, 2, fewer="the kernel is at its bound"))
    assert len(calls) == 1
    assert "10 avenues and 5 experiments were asked for (the kernel is at its bound)" in said.text


def test_of_too_many_experiments_the_first_are_taken_and_the_rest_counted(hold: Hold) -> None:
    _, said, calls = researched(hold, plan(12, 7))
    assert len(calls) == 1
    assert (len(said.avenues), len(said.experiments), said.surplus) == (12, 5, 2)
    assert "2 more than asked for were left out" in said.text


def test_without_repairs_the_first_answer_is_taken(hold: Hold) -> None:
    config = Config.model_validate({"repairs": {"reply": 0}})
    _, said, calls = researched(hold, plan(3, 2), config=config)
    assert len(calls) == 1 and len(said.experiments) == 2


def test_the_offline_model_says_why_it_has_fewer_and_is_asked_once(hold: Hold) -> None:
    held = hold(generations=2, experiments=2)
    assert {call.purpose for call in held.of(ev.ModelCall) if call.agent == "researcher"} == {"research"}
    assert all("by rule" in said.counts for said in held.contents(Hypotheses))
