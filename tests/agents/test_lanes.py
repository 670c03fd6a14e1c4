"""Generations side by side: models' latency overlaps, the device does not, and what is shared stays right."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Limits, Run, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.lane import lane_of
from kernel_scientist.agents.messages import StepFailed
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Hold, Shelf
from .runs import PRICED, PaidModel, cut_copy

LANES = 3


def times(constants: Any) -> FakeAnswer:
    return FakeAnswer(time_us=1000.0)


def in_lanes(hold: Hold, **arguments: Any) -> Any:
    model = arguments.pop("model", None) or PaidModel(latency_s=0.01)
    options = {"lanes": LANES, "generations": 6, "experiments": 2, "config": PRICED, "script": times}
    return hold(model=model, **{**options, **arguments})


def _turns(events: list[ev.Event]) -> Iterator[tuple[int, int, int]]:
    """Each turn as its lane and the first and the last of its events."""
    began: dict[int, int] = {}
    for event in events:
        if isinstance(event, ev.SpeakerSelected):
            began[event.lane] = event.seq
        elif isinstance(event, ev.MessageSent):
            yield event.lane, began[event.lane], event.seq


def test_lanes_think_at_the_same_time_and_are_judged_one_after_another(hold: Hold) -> None:
    busy, most, lock = 0, 0, threading.Lock()

    def judged(constants: Any) -> FakeAnswer:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        threading.Event().wait(0.002)
        with lock:
            busy -= 1
        return FakeAnswer()

    held = in_lanes(hold, script=judged)

    turns = list(_turns(held.events))
    pairs = [(a, b) for a in turns for b in turns if a[0] < b[0]]
    overlaps = [(a, b) for a, b in pairs if a[1] < b[1] < a[2] or b[1] < a[1] < b[2]]
    assert {lane for pair in overlaps for lane, _, _ in pair} == {1, 2, 3}
    assert most == 1
    judging = [e for e in held.events if isinstance(e, (ev.EvaluationStarted, ev.EvaluationFinished))]
    for started, finished in zip(judging[::2], judging[1::2], strict=True):
        assert isinstance(started, ev.EvaluationStarted) and isinstance(finished, ev.EvaluationFinished)
        assert (started.candidate_id, started.lane) == (finished.candidate_id, finished.lane)


def test_ids_counts_and_lanes_are_right(hold: Hold) -> None:
    held = in_lanes(hold)

    candidates = held.run.candidates()
    assert [one.id for one in candidates] == [f"{number:04d}" for number in range(13)]
    assert all(one.finding is not None and one.experiment is not None for one in candidates[1:])
    assert {event.lane for event in held.events if event.generation} == {1, 2, 3}
    assert all(event.lane == lane_of(event.generation, LANES) for event in held.events if event.generation)
    assert all(event.lane == 0 for event in held.events if not event.generation)
    totals, calls = held.run.info.totals, held.of(ev.ModelCall)
    assert (totals.evaluations, totals.candidates, totals.model_calls) == (12, 12, len(calls))
    assert totals.cost_usd == pytest.approx(sum(call.cost_usd for call in calls))
    assert [event.seq for event in held.events] == list(range(1, len(held.events) + 1))


def test_a_limit_ends_all_lanes_and_is_not_overrun(hold: Hold) -> None:
    held = in_lanes(hold, limits=Limits(max_evaluations=5))

    assert (held.result.exit_code, held.run.info.totals.evaluations) == (4, 5)
    (limit,) = held.of(ev.LimitReached)
    after = [event for event in held.events if event.seq > limit.seq]
    assert not any(isinstance(event, (ev.ModelCall, ev.SpeakerSelected)) for event in after)


def test_a_cost_limit_is_passed_by_at_most_a_call_in_each_lane(hold: Hold) -> None:
    a_call = 0.0012
    held = in_lanes(hold, limits=Limits(max_cost_usd=10.5 * a_call))
    assert held.result.status == "limit"
    assert held.run.info.totals.model_calls <= 11 + LANES - 1


def test_what_breaks_in_one_lane_ends_the_session_as_it_is(hold: Hold, tmp_path: Path) -> None:
    count = 0

    def breaks(constants: Any) -> FakeAnswer:
        nonlocal count
        count += 1
        if count > 12:
            raise ZeroDivisionError("the judge broke")
        return FakeAnswer()

    with pytest.raises(ZeroDivisionError, match="the judge broke"):
        in_lanes(hold, script=breaks)
    assert Run.open("last", runs_dir=tmp_path / "runs").info.status == "failed"


def test_lanes_of_the_offline_model_do_not_try_the_same(hold: Hold) -> None:
    def uphill(constants: Any) -> FakeAnswer:
        return FakeAnswer(time_us=1000.0 / (constants["THREAD_M"] * constants["THREAD_N"]))

    held = hold(lanes=LANES, generations=6, experiments=2, script=uphill)
    assert not held.contents(StepFailed)
    assert held.run.info.totals.candidates == 12
    assert held.result.status == "improved"


def test_an_interrupted_run_of_several_lanes_goes_on(hold: Hold) -> None:
    held = _interrupted_after(hold, calls=20)
    assert held.result.exit_code == 130
    begun = {event.generation for event in held.of(ev.GenerationStarted)}
    assert len(begun) >= LANES

    resumed = _go_on(held.run)
    assert resumed.info.status == "not_improved"
    _is_whole(resumed)


def _interrupted_after(hold: Hold, calls: int) -> Any:
    events: list[ev.Event] = []

    def watch(event: ev.Event) -> None:
        events.append(event)
        if isinstance(event, ev.ModelCall) and sum(isinstance(one, ev.ModelCall) for one in events) == calls:
            os.kill(os.getpid(), signal.SIGINT)

    held = in_lanes(hold, observer=watch)
    held.events.extend(events)
    return held


def _go_on(run: Run) -> Run:
    model = PaidModel(latency_s=0.005)
    paid = sum(isinstance(event, ev.ModelCall) for event in run.events())
    Session.resume(run, model=model, target=FakeTarget(times), knowledge=Shelf()).run()
    assert run.info.totals.model_calls == paid + len(model.calls)
    return run


def _is_whole(run: Run) -> None:
    candidates = run.candidates()[1:]
    assert len(candidates) == 12 and all(one.finding is not None for one in candidates)
    slots = {(one.generation, one.slot) for one in candidates}
    assert slots == {(generation, slot) for generation in range(1, 7) for slot in range(2)}
    totals = run.info.totals
    assert (totals.candidates, totals.evaluations) == (12, 12)
    calls = [event for event in run.events() if isinstance(event, ev.ModelCall)]
    assert totals.model_calls == len(calls)


@pytest.mark.parametrize("part", [1, 3, 5])
@pytest.mark.slow
def test_a_killed_run_of_several_lanes_goes_on(hold: Hold, tmp_path: Path, part: int) -> None:
    whole = in_lanes(hold).run
    lines = len((whole.path / "events.jsonl").read_bytes().splitlines())
    _is_whole(_go_on(cut_copy(whole, tmp_path / "killed", part * lines // 6)))
