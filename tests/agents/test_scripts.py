"""Sessions from a script: a stream of events, cancelling, agents and policies of one's own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Run, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.chat import Progress
from kernel_scientist.agents.messages import Selection
from kernel_scientist.agents.policies import Parents, Situation
from kernel_scientist.agents.selector import SelectorAgent
from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.evaluation import Verdict
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Hold, Shelf, times


def session(folder: Path, **arguments: Any) -> Session:
    options: dict[str, Any] = {"generations": 2, "experiments": 1, "config": Config()}
    options |= {"target": FakeTarget(times), "knowledge": Shelf(), "runs_dir": folder, **arguments}
    return Session("matmul", **options)


def test_a_session_can_be_read_as_a_stream_of_its_events(tmp_path: Path) -> None:
    seen: list[ev.Event] = []
    told: list[ev.Event] = []
    one = session(tmp_path, observer=told.append)

    async def main() -> None:
        async for event in one.stream():
            seen.append(event)

    asyncio.run(main())
    assert one.result is not None and one.result.status == "improved"
    assert seen == told == list(one.result.run.events())


def test_leaving_a_stream_ends_the_session_in_order_and_it_can_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with aclosing(session(tmp_path).stream()) as events:
            async for event in events:
                if isinstance(event, ev.CandidateCreated) and event.candidate_id == "0001":
                    break

    asyncio.run(main())
    run = Run.open("last", runs_dir=tmp_path)
    assert (run.info.status, run.info.stop_reason) == ("interrupted", "cancelled")
    result = Session.resume(run, target=FakeTarget(times), knowledge=Shelf()).run()
    assert (result.status, run.info.totals.candidates) == ("improved", 2)


def test_what_a_session_raises_comes_out_of_its_stream(tmp_path: Path) -> None:
    wrong = FakeTarget(lambda constants: FakeAnswer(verdict=Verdict.WRONG_RESULT, message="c differs"))

    async def main() -> int:
        return len([event async for event in session(tmp_path, target=wrong).stream()])

    with pytest.raises(UsageError, match="its result is wrong"):
        asyncio.run(main())


def test_an_observer_can_cancel_the_session(tmp_path: Path) -> None:
    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.BestChanged):
            one.cancel("good enough")

    one = session(tmp_path, generations=50, observer=watch)
    result = one.run()
    assert (result.exit_code, result.stop_reason) == (130, "good enough")
    assert result.best is not None


def test_a_session_can_be_cancelled_from_another_thread_and_before_it_runs(tmp_path: Path) -> None:
    judged = threading.Event()

    def script(constants: Any) -> FakeAnswer:
        judged.set()
        return FakeAnswer()

    def cancel() -> None:
        judged.wait(30)
        one.cancel()

    one = session(tmp_path / "a", generations=1000, target=FakeTarget(script))
    helper = threading.Thread(target=cancel)
    helper.start()
    assert one.run().status == "interrupted"
    helper.join()
    two = session(tmp_path / "b")
    two.cancel("not today")
    assert two.run().stop_reason == "not today"


class FirstIsBase(SelectorAgent):
    """A Selector of the user's own: it asks no model."""

    async def speak(self, progress: Progress) -> Selection:
        return Selection(base_id="0000", reasons="always from the start")


def test_an_agent_of_one_s_own_takes_the_place_of_one_of_the_four(hold: Hold) -> None:
    def make(lab: Any, model: Any) -> FirstIsBase:
        return FirstIsBase("selector", "Takes the first.", lab, model)

    held = hold(generations=2, experiments=1, agents={"selector": make})
    assert [one.base_id for one in held.contents(Selection)] == ["0000", "0000"]
    assert not any(call.agent == "selector" for call in held.of(ev.ModelCall))
    with pytest.raises(UsageError, match="no agent 'boss' to replace; there are selector"):
        hold(agents={"boss": make})


class Latest:
    """A policy of the user's own."""

    name = "latest"

    def choose(self, situation: Situation) -> Parents:
        accepted = [member for member in situation.population if member.accepted]
        return Parents(accepted[-1].id, None, "the latest")


def test_a_policy_of_one_s_own_chooses_and_a_resumed_run_asks_for_it_again(hold: Hold) -> None:
    held = hold(generations=3, experiments=1, policy=Latest())
    bases = [one.base_id for one in held.contents(Selection)]
    assert bases[0] == "0000" and bases == sorted(bases) and len(set(bases)) > 1
    assert held.run.info.policy == "latest"
    options: dict[str, Any] = {"target": FakeTarget(times), "knowledge": Shelf(), "generations": 4}
    with pytest.raises(UsageError, match="searched by policy latest, and here by paper"):
        Session.resume(held.run, **options).run()
    assert Session.resume(held.run, policy=Latest(), **options).run().run.info.generation == 4
