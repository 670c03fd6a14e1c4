"""One batch: poison, run in a fresh worker, and look at what it left before its time counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernel_scientist.sandbox.execution import (
    BatchOutcome,
    Crashed,
    Finished,
    Implausible,
    NotLaunched,
    Tampered,
    TimedOut,
)

from .builds import Build
from .evaluation import Verdict
from .targets.base import Device
from .workload import Workload

__all__ = ["Batch", "Fault", "Patience", "run_checked", "run_timed", "shape_text"]

_CHANCES = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """The time of `runs` runs together: by the wall clock, and what of it the worker had its core.

    `processor_s` is ``None`` where the device cannot tell, and so is `device_s`, the runs' time by the
    device's own clock.
    """

    runs: int
    wall_s: float
    processor_s: float | None
    device_s: float | None = None

    @property
    def run_s(self) -> float:
        """Seconds a run: by the device's clock where it has one, else on the core, else by the wall clock."""
        known = (one for one in (self.device_s, self.processor_s) if one is not None)
        return next(known, self.wall_s) / self.runs


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a kernel is not accepted. `contender` is its number among those measured together."""

    verdict: Verdict
    message: str
    contender: int = 0
    log: str = ""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a batch may take: `per_run_s` for each of its runs, and at least `least_s`."""

    least_s: float
    per_run_s: float

    def batch_s(self, runs: int) -> float:
        return max(self.least_s, self.per_run_s * runs)


def shape_text(shape: Mapping[str, int]) -> str:
    """A shape as people write it: ``m=128 n=64``."""
    return " ".join(f"{name}={extent}" for name, extent in shape.items())


def run_checked(
    device: Device,
    workload: Workload,
    build: Build,
    contender: int,
    *,
    count: int,
    timeout_s: float,
    rng: np.random.Generator,
    checked_runs: int,
    reverse: bool = False,
) -> float | Fault:
    """Seconds per run of `run_timed`'s batch, or what is wrong with it."""
    answer = run_timed(
        device,
        workload,
        build,
        contender,
        count=count,
        timeout_s=timeout_s,
        rng=rng,
        checked_runs=checked_runs,
        reverse=reverse,
    )
    return answer.run_s if isinstance(answer, Batch) else answer


def run_timed(
    device: Device,
    workload: Workload,
    build: Build,
    contender: int,
    *,
    count: int,
    timeout_s: float,
    rng: np.random.Generator,
    checked_runs: int,
    reverse: bool = False,
) -> Batch | Fault:
    """The first `count` runs in a fresh worker, or what is wrong with them.

    Every output is checked for coverage, and `checked_runs` of those not yet known to be right, chosen at
    random when the worker is dead, are compared in full.
    """
    outcome = _run(device, workload, build, contender, count, timeout_s, reverse)
    where = f"on shape {shape_text(workload.shape)}"
    if reverse:
        where += ", with the blocks and the threads of each in reverse order (is a barrier missing?)"
    match outcome:
        case Crashed(reason=reason):
            return Fault(Verdict.CRASHED, f"{where}: {reason}", contender)
        case TimedOut(limit_s):
            text = f"{where}: {count} runs were not over after {limit_s:.1f} s and were stopped"
            return Fault(Verdict.TIMEOUT, text, contender)
        case NotLaunched(reason):
            return Fault(Verdict.LAUNCH_ERROR, f"{where}: {reason}", contender)
        case Tampered(reason):
            return Fault(Verdict.WRONG_RESULT, f"{where}: {reason}", contender)
        case Implausible(reason):
            return Fault(Verdict.IMPLAUSIBLE, f"{where}: {reason}", contender)
        case Finished(wall_s, processor_s, device_s):
            fault = _inspect(workload, contender, count, rng, checked_runs, where)
            return fault if fault is not None else Batch(count, wall_s, processor_s, device_s)


def _run(
    device: Device,
    workload: Workload,
    build: Build,
    contender: int,
    count: int,
    timeout_s: float,
    reverse: bool,
) -> BatchOutcome:
    """What came of the batch; of one whose clocks contradict each other, what came of it again.

    A host that is late looks like a false clock, but not time after time.
    """
    for _ in range(_CHANCES - 1):
        outcome = _run_once(device, workload, build, contender, count, timeout_s, reverse)
        if not isinstance(outcome, Implausible):
            return outcome
    return _run_once(device, workload, build, contender, count, timeout_s, reverse)


def _run_once(
    device: Device,
    workload: Workload,
    build: Build,
    contender: int,
    count: int,
    timeout_s: float,
    reverse: bool,
) -> BatchOutcome:
    workload.poison()
    return device.run(
        build.code,
        workload.workspace,
        workload.launches(contender),
        count=count,
        timeout_s=timeout_s,
        reverse_fibers=reverse,
    )


def _inspect(
    workload: Workload, contender: int, count: int, rng: np.random.Generator, checked_runs: int, where: str
) -> Fault | None:
    damaged = workload.workspace.damaged()
    if damaged:
        return Fault(
            Verdict.WRONG_RESULT, f"{where}: wrote outside the buffer {', '.join(damaged)}", contender
        )
    suspects = workload.suspects(count)
    chosen = {int(run) for run in rng.permutation(suspects)[:checked_runs]}
    for run in suspects:
        if run in chosen or workload.maybe_unwritten(run):
            mismatch = workload.compare(run)
            if mismatch is not None:
                inputs = f"inputs '{workload.distributions[run]}'"
                return Fault(Verdict.WRONG_RESULT, f"{where}, {inputs}: {mismatch.sentence()}", contender)
    return None
