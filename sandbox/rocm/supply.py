"""Workers of one device that are started ahead, several at a time, where starting one takes long.

A group starts while no kernel runs, and the first of it is given out when all have started: nothing but the
one worker is at work while it is timed. What waits has started the runtime and touched no device; it knows of
no candidate, since its batch is given to it when its turn comes. So every batch still has a fresh process.
After anything but a clean end those that wait are dropped: a reset of the device takes their contexts along.
"""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import final

from .process import DeviceWorker, WorkerProcess

__all__ = ["WorkerSupply"]

# Where a start takes less, what is started and not used after all costs more than it saves.
_WORTH_S = 0.3
_MOST = 8


@final
class WorkerSupply:
    """Gives out started workers; those that were not needed are killed on exit."""

    def __init__(self, where: DeviceWorker) -> None:
        self.where = where
        self._waiting: deque[WorkerProcess] = deque()
        self._next_group = 1

    def take(self) -> WorkerProcess:
        """A worker that has had no batch; its `started` tells how its start went."""
        if not self._waiting:
            self._start_group()
        return self._waiting.popleft()

    def drop(self) -> None:
        """Kill those that wait."""
        while self._waiting:
            self._waiting.popleft().close()

    def _start_group(self) -> None:
        began = time.perf_counter()
        for _ in range(self._next_group):
            self._waiting.append(WorkerProcess(self.where))
        for one in self._waiting:
            one.started()
        slow = time.perf_counter() - began > _WORTH_S
        # Twice as many each time: a kernel that is wrong at once does not leave many started for nothing.
        self._next_group = min(_MOST, 2 * self._next_group) if slow else 1

    def __enter__(self) -> WorkerSupply:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()
