"""Being stopped: Ctrl-C, a cancelled caller, and a tool that is running at the time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Run, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

from .conftest import Hold, Shelf, times


def test_ctrl_c_during_an_evaluation_ends_the_session_in_order_with_130(hold: Hold) -> None:
    evaluations = 0

    def script(constants: dict[str, Any]) -> FakeAnswer:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 8:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return times(constants)

    held = hold(script=script, generations=50)
    assert (held.result.status, held.result.exit_code) == ("interrupted", 130)
    assert isinstance(held.events[-1], ev.RunFinished)
    assert held.run.info.status == "interrupted"
    best = held.run.info.best
    assert best is not None and best.tier == "screen", "what leads is kept, and not called confirmed"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_twice_at_once_is_one_request(hold: Hold, number: signal.Signals) -> None:
    """As `timeout` does: it signals the process, then the process's group."""
    evaluations = 0

    def script(constants: dict[str, Any]) -> FakeAnswer:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 8:
            os.kill(os.getpid(), number)
            time.sleep(0.05)
            os.kill(os.getpid(), number)
            time.sleep(0.2)
        return times(constants)

    held = hold(script=script, generations=50)
    assert (held.result.status, held.result.exit_code) == ("interrupted", 130)
    assert isinstance(held.events[-1], ev.RunFinished)
    assert not list(held.run.path.glob(".*.part"))
    assert signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL)


def test_cancelling_the_caller_s_task_does_not_hang(tmp_path: Path) -> None:
    started, release = threading.Event(), threading.Event()
    calls = 0

    def script(constants: dict[str, Any]) -> FakeAnswer:
        nonlocal calls
        calls += 1
        if calls > 4:
            started.set()
            release.wait(10)
        return times(constants)

    session = Session(
        "matmul", target=FakeTarget(script), knowledge=Shelf(), runs_dir=tmp_path, config=Config()
    )

    async def main() -> None:
        task = asyncio.create_task(session.run_async())
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 10)
        finally:
            release.set()

    asyncio.run(main())
    run = Run.open("last", runs_dir=tmp_path)
    assert (run.info.status, run.info.stop_reason) == ("interrupted", "cancelled")
    assert not any(isinstance(event, ev.ErrorRecorded) for event in run.events())


def test_a_fault_of_the_observer_s_reaches_the_caller_as_it_is(hold: Hold) -> None:
    class Broken(Exception):
        pass

    def observer(event: ev.Event) -> None:
        if event.kind == "candidate_created" and event.candidate_id == "0002":
            raise Broken("pipe")

    with pytest.raises(Broken, match="pipe"):
        hold(observer=observer)


def test_a_broken_judge_ends_the_session_with_its_own_exception(hold: Hold, tmp_path: Path) -> None:
    def script(constants: dict[str, Any]) -> FakeAnswer:
        if constants["THREAD_N"] > 1:
            raise ZeroDivisionError("the judge broke")
        return FakeAnswer()

    with pytest.raises(ZeroDivisionError, match="the judge broke"):
        hold(script=script)
    info = Run.open("last", runs_dir=tmp_path / "runs").info
    assert (info.status, info.exit_code) == ("failed", 1)


def test_importing_the_package_loads_neither_autogen_nor_chroma() -> None:
    code = (
        "import sys, kernel_scientist.agents as a; a.Session, a.Run, a.load_config; "
        "heavy = {'autogen_core', 'autogen_agentchat', 'openai', 'chromadb', 'onnxruntime'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    links = str(Path(__file__).parents[2] / ".links")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": links},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]", done.stderr


class Odd(BaseException):
    """What no session expects."""


@pytest.mark.parametrize("kind", [Odd, SystemExit, KeyboardInterrupt])
def test_what_an_observer_raises_ends_the_session_whatever_it_is(
    hold: Hold, tmp_path: Path, kind: type[BaseException]
) -> None:
    def observer(event: ev.Event) -> None:
        if event.kind == "tool_call":
            raise kind("enough")

    with pytest.raises(kind):
        hold(generations=1, experiments=1, observer=observer)
    run = Run.open("last", runs_dir=tmp_path / "runs")
    assert run.info.status in ("failed", "interrupted")
