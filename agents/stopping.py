"""How a session is asked to stop, and how whoever waits in it stops waiting."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast, final

from .interrupts import Halted, Interrupted

__all__ = ["GRACE_S", "StopSignal", "in_thread", "listen_to_signals"]

T = TypeVar("T")

GRACE_S = 10.0
"""So long an evaluation in flight may still take when the session is asked to stop."""

_SAME_REQUEST_S = 0.5


@final
class StopSignal:
    """Set once, from a signal handler or a cancelled caller; whoever waits stops waiting.

    `set` asks for an end in order: calls of models are given up, an evaluation in flight gets `GRACE_S`.
    `hurry` waives that. `halt` is the end of the other lanes when one has ended the session: what they
    have begun is finished, nothing is begun.
    """

    def __init__(self) -> None:
        self._set = asyncio.Event()
        self._hurry = asyncio.Event()
        self._halted = False
        self.reason = ""

    def set(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._set.set()

    def hurry(self) -> None:
        self._hurry.set()

    def halt(self) -> None:
        self._halted = True

    def check(self) -> None:
        """Raise `Interrupted` or `Halted` when nothing more may be begun."""
        if self._set.is_set():
            raise Interrupted(self.reason)
        if self._halted:
            raise Halted("another lane has ended the session")

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Await `work`, or raise `Interrupted` as soon as the signal is set.

        Cancellation never passes through AutoGen's runtime, which hangs when a tool is cancelled.
        """
        task = asyncio.ensure_future(work)
        try:
            await self._either(task, self._set)
        finally:
            if not task.done():
                task.cancel()
        return self._result(task)

    async def with_grace(self, work: Awaitable[T], waiting: Callable[[], object]) -> T:
        """Await `work`; once the signal is set, for `GRACE_S` at most, having called `waiting`."""
        task = asyncio.ensure_future(work)
        try:
            await self._either(task, self._set)
            if not task.done() and not self._hurry.is_set():
                waiting()
                await self._either(task, self._hurry, GRACE_S)
        finally:
            if not task.done():
                task.cancel()
        return self._result(task)

    async def _either(
        self, task: asyncio.Future[T], event: asyncio.Event, timeout: float | None = None
    ) -> None:
        waiter = asyncio.ensure_future(event.wait())
        try:
            both: set[asyncio.Future[Any]] = {task, waiter}
            await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()

    def _result(self, task: asyncio.Future[T]) -> T:
        if task.done() and not task.cancelled() and not (self._set.is_set() and task.exception()):
            return task.result()
        # What fails at such a moment may have got the same signal.
        raise Interrupted(self.reason)


async def in_thread(work: Callable[[], T]) -> T:
    """Do `work` in a thread that neither the event loop nor the interpreter waits for at the end.

    When the caller is cancelled the work goes on, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast("T", result))

    def body() -> None:
        result, fault = None, None
        try:
            result = work()
        except BaseException as error:
            fault = error
        # The loop is closed when nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=body, name="judge", daemon=True).start()
    return await done


def listen_to_signals(stop: StopSignal) -> None:
    """Let Ctrl-C and SIGTERM set `stop` until the loop is closed, a second Ctrl-C hurry it.

    One that comes with the first is the same request: `timeout` signals the process and then its group.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        stop.set("interrupted")
        loop.call_later(_SAME_REQUEST_S, loop.add_signal_handler, signal.SIGINT, hurry)

    def hurry() -> None:
        stop.hurry()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, stop.set, "terminated")
