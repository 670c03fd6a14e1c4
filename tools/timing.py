"""How long a run takes: batches of one or two kernels, each batch in a fresh worker, by the judge's clock.

A batch's time is its wall time over its number of runs; nothing is subtracted. Every run reads inputs
and writes outputs that no other run of the batch touches, so that each finds them cold in the private
caches. With two kernels, batches come in pairs, in random order within a pair.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .batches import Fault, Patience, run_checked
from .builds import Build
from .problem import Problem
from .settings import JudgeSettings, TierSettings
from .targets.base import Device
from .workload import Workload, bytes_per_run

__all__ = ["Measurement", "Pilot", "ShapeTimer", "number_of_pairs"]

_EVERY = 1_000_000
# A kernel that much slower than the other runs fewer times a batch, so that a batch stays short.
_LONG_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Pilot:
    """What was learnt of a shape before it is measured: runs a batch of each contender, seconds a pair.

    `cut_short` says that the first contender is so slow that it gets no more pairs than necessary.
    """

    shape: Mapping[str, int]
    runs: tuple[int, ...]
    pair_s: float
    cut_short: bool


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds per run of each batch, one sequence a contender, the same index being the same pair."""

    times_s: tuple[tuple[float, ...], ...]
    runs: tuple[int, ...]

    def log_ratios(self) -> list[float]:
        """ln(second contender's time / first one's), pair by pair."""
        first, second = self.times_s
        return [math.log(b / a) for a, b in zip(first, second, strict=True)]


def number_of_pairs(pilots: Sequence[Pilot], tier: TierSettings, spent_s: float) -> int:
    """How many pairs to measure of every shape; settled here, before the first, and not changed after.

    `spent_s` is what the pilots took out of the budget.
    """
    left_s = tier.budget_s * len(pilots) - spent_s
    affordable = int(left_s / sum(pilot.pair_s for pilot in pilots))
    return min(tier.pairs, max(tier.least_pairs, affordable))


class ShapeTimer:
    """Times builds of one problem: one alone, or a candidate and a baseline (in this order) in pairs.

    The caller holds the device's exclusive lock.
    """

    def __init__(
        self,
        device: Device,
        problem: Problem,
        settings: JudgeSettings,
        rng: np.random.Generator,
    ) -> None:
        self._device = device
        self._problem = problem
        self._settings = settings
        self._rng = rng

    def pilot(self, shape: Mapping[str, int], builds: Sequence[Build], patience: Patience) -> Pilot | Fault:
        """Run every contender on inputs of every distribution and compare every output.

        A kernel that is right on the test shapes only is found here, before anything is timed.
        """
        plans = [build.plan for build in builds]
        room = max(1, self._settings.memory_bytes // bytes_per_run(self._problem, shape, plans))
        runs = min(room, len(self._problem.distributions))
        with Workload(self._device, self._problem, shape, plans, runs) as workload:
            began = time.perf_counter()
            for run in range(runs):
                workload.fill(run, self._rng, self._problem.distributions[run])
            input_s = (time.perf_counter() - began) / runs
            seconds: list[float] = []
            overhead_s = 0.0
            for contender, build in enumerate(builds):
                answer = self._try(workload, build, contender, patience)
                if isinstance(answer, Fault):
                    return answer
                seconds.append(answer[0])
                overhead_s += answer[1]
        return self._plan(shape, builds, seconds, overhead_s, input_s)

    def measure(
        self,
        pilot: Pilot,
        builds: Sequence[Build],
        *,
        pairs: int,
        checked_runs: int,
        patience: Patience,
    ) -> Measurement | Fault:
        """Measure `pairs` pairs; of each batch `checked_runs` outputs at most are compared in full."""
        plans = [build.plan for build in builds]
        runs = max(pilot.runs)
        times: list[list[float]] = [[] for _ in builds]
        with Workload(self._device, self._problem, pilot.shape, plans, runs) as workload:
            for run in range(runs):
                workload.fill(run, self._rng, self._problem.distributions[0])
            for _ in range(pairs):
                for contender in map(int, self._rng.permutation(len(builds))):
                    count = pilot.runs[contender]
                    answer = self._run(workload, builds[contender], contender, count, patience, checked_runs)
                    if isinstance(answer, Fault):
                        return answer
                    times[contender].append(answer)
        return Measurement(tuple(map(tuple, times)), pilot.runs)

    def _try(
        self, workload: Workload, build: Build, contender: int, patience: Patience
    ) -> tuple[float, float] | Fault:
        """Seconds of a run, and of a batch beyond its runs."""
        answer = self._run(workload, build, contender, workload.runs, patience, _EVERY)
        if isinstance(answer, Fault) or answer > _LONG_BATCHES * self._settings.batch_s:
            return answer if isinstance(answer, Fault) else (answer, 0.0)
        # Once more without comparing everything: that is what a batch costs when it is timed.
        count = min(workload.runs, math.ceil(self._settings.batch_s / answer))
        began = time.perf_counter()
        again = self._run(workload, build, contender, count, patience, 0)
        if isinstance(again, Fault):
            return again
        return again, max(0.0, time.perf_counter() - began - again * count)

    def _plan(
        self,
        shape: Mapping[str, int],
        builds: Sequence[Build],
        seconds: Sequence[float],
        overhead_s: float,
        input_s: float,
    ) -> Pilot:
        settings = self._settings
        nbytes = bytes_per_run(self._problem, shape, [build.plan for build in builds])
        wanted = math.ceil(settings.batch_s / min(seconds))
        affordable = int(settings.inputs_budget_s / input_s)
        runs = max(1, min(wanted, settings.max_runs, settings.memory_bytes // nbytes, affordable))
        longest = _LONG_BATCHES * settings.batch_s
        counts = [min(runs, max(1, int(longest / one))) for one in seconds]
        cut_short = len(seconds) > 1 and seconds[0] > settings.slow_factor * seconds[1]
        if cut_short:
            counts[0] = 1
        pair_s = overhead_s + sum(one * count for one, count in zip(seconds, counts, strict=True))
        return Pilot(shape, tuple(counts), pair_s, cut_short)

    def _run(
        self,
        workload: Workload,
        build: Build,
        contender: int,
        count: int,
        patience: Patience,
        checked_runs: int,
    ) -> float | Fault:
        return run_checked(
            self._device,
            workload,
            build,
            contender,
            count=count,
            timeout_s=patience.batch_s(count),
            rng=self._rng,
            checked_runs=checked_runs,
        )
