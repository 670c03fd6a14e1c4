"""The generations of a sitting, in lanes that go on side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import final

from .interrupts import Halted, Interrupted, LimitHit, ModelGone, RecordingOver
from .lab import Lab
from .lane import Lane, lane_of
from .past import Past
from .policies.headroom import no_headroom
from .setup import Setup

__all__ = ["Generations"]


@final
class Generations:
    """Those that a run still has to do. `begun` is told each that begins.

    `nothing_to_try` is why no more was begun, where it was not their number or a fault.
    """

    def __init__(self, setup: Setup, lab: Lab, past: Past | None, begun: Callable[[int], None]) -> None:
        self._setup = setup
        self._lab = lab
        self._past = past
        self._begun = begun
        known = past is not None and setup.config.generations <= past.info.generations
        self.nothing_to_try = past.nothing_to_try if past is not None and known else None

    async def run(self) -> None:
        """Run all lanes to their end; raises what ended the session, the gravest of it."""
        config = self._setup.config
        numbers = range(1, config.generations + 1)
        pending = numbers if self._past is None else self._past.pending(config.generations)
        shares: dict[int, list[int]] = {}
        for generation in pending:
            shares.setdefault(lane_of(generation, config.lanes), []).append(generation)
        tasks = [asyncio.ensure_future(self._run_lane(number, share)) for number, share in shares.items()]
        if not tasks:
            return
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        faults = [fault for task in tasks if (fault := task.exception()) is not None]
        if faults:
            raise min(faults, key=_gravity)

    async def _run_lane(self, number: int, generations: Sequence[int]) -> None:
        lane = Lane(number, self._setup, self._lab)
        try:
            for generation in generations:
                past = self._past.conversations.get(generation) if self._past is not None else None
                if (past is None or not past.started) and self._is_enough():
                    return
                self._lab.stop.check()
                self._lab.budget.check_evaluation()
                self._begun(generation)
                reason = await lane.converse(generation, past)
                self.nothing_to_try = self.nothing_to_try or reason
        except RecordingOver:
            # Other lanes' recordings may have more.
            raise
        except BaseException:
            self._lab.stop.halt()
            raise

    def _is_enough(self) -> bool:
        """Whether no other conversation is worth beginning; `nothing_to_try` then says why."""
        if self.nothing_to_try is None:
            self.nothing_to_try = no_headroom(self._lab.population, self._setup.config.search)
        return self.nothing_to_try is not None


def _gravity(fault: BaseException) -> int:
    """Which of several lanes' ends is told: the smallest."""
    kinds = (Interrupted, ModelGone, LimitHit, RecordingOver, Halted)
    return next((rank for rank, kind in enumerate(kinds, start=1) if isinstance(fault, kind)), 0)
