"""How long a run takes: batches of one or two kernels, each batch in a fresh worker, by the judge's clocks.

A batch's time is what its worker had of the timed core, over the number of runs, or wall time where the
device cannot tell; nothing is subtracted that a worker could inflate. With two kernels, batches come in
pairs, in random order within a pair, after a warm-up of the baseline alone.

On the CPU caches are *cold*: every run reads inputs and writes outputs that no other run of the batch
touches, so that none finds them in the core's own caches; the last-level cache may hold what the judge wrote.
A warm policy is not offered there: a kernel launched twice on the same inputs can hand out what it has
computed. A GPU's inputs are rewritten for every run; see targets/mi300.py for what is done to its caches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from .batches import Batch, Fault, Patience, run_timed
from .builds import Build
from .problem import Problem
from .settings import JudgeSettings, TierSettings
from .statistics import paired_noise, pairs_for
from .targets.base import Device
from .warm_up import WarmUp, warm_up
from .workload import Workload, bytes_per_run

__all__ = ["Measurement", "Pilot", "ShapeTimer", "measure_shapes", "number_of_pairs"]

_EVERY = 1_000_000
# A kernel that much slower than the other runs fewer times a batch, so that a batch stays short.
_LONG_BATCHES = 5
# Beyond this ratio of runs a batch, pilot and measurement contradict each other.
_DOUBT = 2


@dataclass(frozen=True, slots=True)
class Pilot:
    """What was learnt of a shape before it is measured: runs a batch of each contender, seconds a pair.

    `run_s` are seconds a run of each. `cut_short` says that the first contender is so slow that it gets no
    more pairs than necessary.
    """

    shape: Mapping[str, int]
    runs: tuple[int, ...]
    pair_s: float
    cut_short: bool
    run_s: tuple[float, ...]

    def pair_after(self, warm: WarmUp) -> float:
        """Seconds a pair will take, now that batches of the last contender have been measured."""
        batches = [count * one for count, one in zip(self.runs, self.run_s, strict=True)]
        return len(batches) * warm.batch_s + max(0.0, math.fsum(batches) - len(batches) * batches[-1])


@dataclass(frozen=True, slots=True)
class Measurement:
    """The batches of each contender, the same index being the same pair, and the warm-up before them."""

    batches: tuple[tuple[Batch, ...], ...]
    warm: WarmUp

    @property
    def times_s(self) -> tuple[tuple[float, ...], ...]:
        """Seconds per run of each batch, one sequence a contender."""
        return tuple(tuple(batch.run_s for batch in batches) for batches in self.batches)

    @property
    def runs(self) -> tuple[int, ...]:
        """Runs a batch of each contender."""
        return tuple(batches[0].runs for batches in self.batches)

    @property
    def noise(self) -> float:
        """What successive batches of the baseline, or of the only contender, differ by."""
        return paired_noise(self.times_s[-1])

    @property
    def waited(self) -> float | None:
        """The share of the batches' wall time in which their workers did not have the core.

        ``None`` where the device cannot tell.
        """
        timed = [batch for batches in self.batches for batch in batches if batch.processor_s is not None]
        if not timed:
            return None
        on_core_s = math.fsum(batch.processor_s or 0.0 for batch in timed)
        return 1.0 - on_core_s / math.fsum(batch.wall_s for batch in timed)

    @property
    def clock(self) -> str:
        """Whose time this is."""
        batches = [batch for batches in self.batches for batch in batches]
        if all(batch.device_s is not None for batch in batches):
            return "time between a pair of the device's events round every run"
        return "wall time" if self.waited is None else "time that the worker had its core"

    def log_ratios(self) -> list[float]:
        """ln(second contender's time / first one's), pair by pair."""
        first, second = self.times_s
        return [math.log(b / a) for a, b in zip(first, second, strict=True)]


def number_of_pairs(tier: TierSettings, level: float, noise: float, pair_s: float, left_s: float) -> int:
    """How many pairs to measure of a shape; settled here, before the first, and not changed after.

    What intervals of `level` need at that noise, as far as pairs of `pair_s` seconds fit into `left_s`.
    """
    wanted = max(tier.pairs, pairs_for(tier.resolution, noise, level))
    return max(tier.least_pairs, min(wanted, max(tier.pairs, tier.most_pairs), int(left_s / pair_s)))


def measure_shapes(
    timer: ShapeTimer,
    shapes: Sequence[Mapping[str, int]],
    contenders: Sequence[Sequence[Build]],
    patience: Sequence[Patience],
    tier: TierSettings,
) -> list[Measurement] | Fault:
    """Pilots on every shape, then their pairs; the budget is shared so that all shapes can have as many."""
    deadline = time.perf_counter() + tier.budget_s * len(shapes)
    pilots: list[Pilot] = []
    for shape, builds, waits in zip(shapes, contenders, patience, strict=True):
        pilot = timer.pilot(shape, builds, waits)
        if isinstance(pilot, Fault):
            return pilot
        pilots.append(pilot)
    measured: list[Measurement] = []
    for i, (pilot, builds, waits) in enumerate(zip(pilots, contenders, patience, strict=True)):
        share = pilot.pair_s / sum(one.pair_s for one in pilots[i:])
        left_s = share * (deadline - time.perf_counter())
        answer = timer.measure(pilot, builds, tier=tier, left_s=left_s, patience=waits)
        if isinstance(answer, Fault):
            return answer
        measured.append(answer)
    return measured


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
        tier: TierSettings,
        left_s: float,
        patience: Patience,
    ) -> Measurement | Fault:
        """Warm up, then measure as many pairs as `number_of_pairs` says.

        Few runs find the caches warm, so a kernel that was slow in the pilot and is fast now is measured
        once more, with as many runs a batch as its speed deserves.
        """
        limits = Patience(
            patience.least_s, min(patience.per_run_s, self._settings.timeout_factor * max(pilot.run_s))
        )
        first = self._measure(pilot, builds, tier, left_s, limits)
        if isinstance(first, Fault):
            return first
        deserved = self._counts([median(times) for times in first.times_s], max(pilot.runs))
        if all(wanted <= _DOUBT * used for wanted, used in zip(deserved, pilot.runs, strict=True)):
            return first
        return self._measure(replace(pilot, runs=deserved), builds, tier, left_s, limits)

    def _measure(
        self, pilot: Pilot, builds: Sequence[Build], tier: TierSettings, left_s: float, patience: Patience
    ) -> Measurement | Fault:
        plans = [build.plan for build in builds]
        runs = max(pilot.runs)
        began = time.perf_counter()
        with Workload(self._device, self._problem, pilot.shape, plans, runs) as workload:
            for run in range(runs):
                workload.fill(run, self._rng, self._problem.distributions[0])

            def batch(contender: int) -> Batch | Fault:
                count = pilot.runs[contender]
                return self._run(workload, builds[contender], contender, count, patience, tier.checked_runs)

            warm = warm_up(lambda: batch(len(builds) - 1), tier)
            if isinstance(warm, Fault):
                return warm
            left_s -= time.perf_counter() - began
            pairs = number_of_pairs(tier, self._settings.level, warm.noise, pilot.pair_after(warm), left_s)
            return self._pairs(batch, len(builds), tier.least_pairs if pilot.cut_short else pairs, warm)

    def _pairs(
        self, batch: Callable[[int], Batch | Fault], contenders: int, pairs: int, warm: WarmUp
    ) -> Measurement | Fault:
        batches: list[list[Batch]] = [[] for _ in range(contenders)]
        for _ in range(pairs):
            for contender in map(int, self._rng.permutation(contenders)):
                answer = batch(contender)
                if isinstance(answer, Fault):
                    return answer
                batches[contender].append(answer)
        return Measurement(tuple(map(tuple, batches)), warm)

    def _try(
        self, workload: Workload, build: Build, contender: int, patience: Patience
    ) -> tuple[float, float] | Fault:
        """Seconds of a run, and of a batch beyond its runs."""
        answer = self._run(workload, build, contender, workload.runs, patience, _EVERY)
        if isinstance(answer, Fault):
            return answer
        if answer.run_s > _LONG_BATCHES * self._settings.batch_s:
            return answer.run_s, answer.wall_s / answer.runs - answer.run_s
        # Once more without comparing everything: that is what a batch costs when it is timed.
        count = min(workload.runs, math.ceil(self._settings.batch_s / answer.run_s))
        began = time.perf_counter()
        again = self._run(workload, build, contender, count, patience, 0)
        if isinstance(again, Fault):
            return again
        return again.run_s, max(0.0, time.perf_counter() - began - again.run_s * count)

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
        counts = self._counts(seconds, runs)
        pair_s = overhead_s + sum(one * count for one, count in zip(seconds, counts, strict=True))
        return Pilot(shape, counts, pair_s, self._is_slow(seconds), tuple(seconds))

    def _is_slow(self, seconds: Sequence[float]) -> bool:
        return len(seconds) > 1 and seconds[0] > self._settings.slow_factor * seconds[1]

    def _counts(self, seconds: Sequence[float], runs: int) -> tuple[int, ...]:
        """Runs a batch of contenders that take `seconds` a run, the faster of them `runs`."""
        longest = _LONG_BATCHES * self._settings.batch_s
        counts = [min(runs, max(1, int(longest / one))) for one in seconds]
        if self._is_slow(seconds):
            counts[0] = 1
        return tuple(counts)

    def _run(
        self,
        workload: Workload,
        build: Build,
        contender: int,
        count: int,
        patience: Patience,
        checked_runs: int,
    ) -> Batch | Fault:
        return run_timed(
            self._device,
            workload,
            build,
            contender,
            count=count,
            timeout_s=patience.batch_s(count),
            rng=self._rng,
            checked_runs=checked_runs,
        )
