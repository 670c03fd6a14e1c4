"""Whether a kernel is right: on every test shape and on shapes drawn for it alone, over all distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .batches import Fault, Patience, run_checked, shape_text
from .builds import Build
from .evaluation import Check, Verdict
from .problem import Problem
from .targets.base import Device
from .workload import Workload, bytes_per_run

__all__ = ["Correctness", "CorrectnessPlan", "check_correctness"]

_EVERY = 1_000_000
# Whether the order shows depends little on the values: a plain loop over threads turned into fibers is slow.
_REVERSE_RUNS = 2


@dataclass(frozen=True, slots=True)
class CorrectnessPlan:
    """The shapes to check, the quick ones first; `names` say of each whether it is listed or drawn."""

    shapes: tuple[Mapping[str, int], ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Correctness:
    """The checks made and the longest seconds a run took; `fault` is the first thing that was wrong."""

    checks: tuple[Check, ...]
    slowest_s: float
    fault: Fault | None


def check_correctness(
    device: Device,
    problem: Problem,
    plan: CorrectnessPlan,
    builds: Sequence[Build],
    rng: np.random.Generator,
    *,
    patience: Patience,
    memory_bytes: int,
) -> Correctness:
    """Run every shape on inputs of every distribution, then some with blocks and threads in reverse order.

    The second pass exposes a race: results that depend on the order in which blocks, or the threads of a
    block, happen to run. A kernel that does not end in that order is not refused for it, since blocks may
    wait for earlier ones. A device that cannot reverse the order is given a second chance to choose its own.
    It stops at the first fault.
    """
    checks: list[Check] = []
    slowest = 0.0
    for shape, name, build in zip(plan.shapes, plan.names, builds, strict=True):
        answer = _check_shape(device, problem, shape, build, rng, patience, memory_bytes)
        title = f"{name} {shape_text(shape)}"
        if isinstance(answer, Fault):
            return Correctness((*checks, Check(title, False, answer.message)), slowest, answer)
        seconds, detail = answer
        slowest = max(slowest, seconds)
        checks.append(Check(title, True, detail))
    return Correctness(tuple(checks), slowest, None)


def _check_shape(
    device: Device,
    problem: Problem,
    shape: Mapping[str, int],
    build: Build,
    rng: np.random.Generator,
    patience: Patience,
    memory_bytes: int,
) -> tuple[float, str] | Fault:
    room = max(1, memory_bytes // bytes_per_run(problem, shape, [build.plan]))
    drawn = rng.permutation(problem.distributions)
    runs = min(room, len(problem.distributions))
    with Workload(device, problem, shape, [build.plan], runs) as workload:
        for run in range(runs):
            workload.fill(run, rng, str(drawn[run]))
        slowest = 0.0
        how = "with blocks and threads in reverse order" if device.reverses else "in a fresh process"
        orders = f"{min(runs, _REVERSE_RUNS)} of them again {how}"
        for again in (False, True):
            reverse = again and device.reverses
            count = min(runs, _REVERSE_RUNS) if again else runs
            answer = run_checked(
                device,
                workload,
                build,
                0,
                count=count,
                timeout_s=min(patience.batch_s(count), _reverse_s(slowest * count) if reverse else math.inf),
                rng=rng,
                checked_runs=_EVERY,
                reverse=reverse,
            )
            if not isinstance(answer, Fault):
                slowest = max(slowest, answer)
            elif reverse and answer.verdict is Verdict.TIMEOUT:
                orders = "in the usual order only: in reverse its blocks wait for one another"
            else:
                return answer
        changed = workload.changed_inputs()
        if changed is not None:
            text = f"on shape {shape_text(shape)}: the inputs of run {changed} were changed"
            return Fault(Verdict.WRONG_RESULT, text)
    return slowest, f"{runs} distributions, {orders}"


def _reverse_s(forward_s: float) -> float:
    """How long the reverse order may take: threads that were a plain loop switch at every turn there."""
    return max(1.0, 200.0 * forward_s)
