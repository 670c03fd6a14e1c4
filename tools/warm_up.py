"""Warming up: batches of the baseline whose times do not count, until they are steady.

They come before the first pair of a shape, and the candidate has no part in them: what they decide, when to
begin and how many pairs to take, it cannot influence, and no time that counts was seen when they decide it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from .batches import Batch, Fault
from .settings import TierSettings
from .statistics import paired_noise

__all__ = ["WarmUp", "warm_up"]

# Times whose medians differ by no more are steady on any machine; on a noisy one, by no more than its noise.
_STEADY = 0.02
_LONGEST = 6


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the warm-up met: `noise` as `paired_noise` has it, and wall seconds a batch with all its costs.

    `settled` is false when the times still moved at the end.
    """

    noise: float
    batch_s: float
    settled: bool


def warm_up(run_batch: Callable[[], Batch | Fault], tier: TierSettings) -> WarmUp | Fault:
    """Run batches until the last `tier.warm_up` agree with as many before them, or three times as long."""
    stretch = max(1, tier.warm_up)
    times: list[float] = []
    costs: list[float] = []
    while len(times) < _LONGEST * stretch:
        began = time.perf_counter()
        batch = run_batch()
        if isinstance(batch, Fault):
            return batch
        times.append(batch.run_s)
        costs.append(max(time.perf_counter() - began, batch.wall_s))
        if len(times) < 2 * stretch:
            continue
        recent = times[-2 * stretch :]
        noise = paired_noise(recent)
        if abs(math.log(median(recent[stretch:]) / median(recent[:stretch]))) <= max(_STEADY, noise):
            return WarmUp(noise, median(costs), True)
    return WarmUp(paired_noise(times), median(costs), False)
