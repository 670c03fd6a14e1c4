"""Whether the times of a GPU's events can be true, by clocks that no kernel reaches.

A kernel can reach the memory in which its own events put their times. It cannot reach the processor's clock:
what lies between the cache policy and the end of a run takes what an empty run takes, and the kernel's time,
and on a busy host what the worker waited for a processor. Where the host was late without that, the caller
asks again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

__all__ = ["Times", "contradiction"]

# What a run may take by the processor's clock beyond its events: a multiple of an empty run's time, and so
# much for each launch that the host may be late with. Where the host is late once, some other run is not.
_EMPTY_FACTOR = 4.0
_LEAST_MS = 0.1
_STEP_MS = 0.02
# An event may end after the clock was read by no more than its resolution and the drift of the two.
_RESOLUTION_MS = 0.05
_DRIFT = 0.01


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds: by each run's events; by the worker's clock round each, and of them those in which the
    worker was ready to run and had no processor; and by that clock without a kernel."""

    event_ms: tuple[float, ...]
    wall_ms: tuple[float, ...]
    waited_ms: tuple[float, ...]
    empty_ms: tuple[float, ...]

    @property
    def device_s(self) -> float:
        return math.fsum(self.event_ms) / 1e3


def contradiction(times: Times, *, steps: int, caller_s: float) -> str | None:
    """The sentence on what cannot be, or ``None``; `caller_s` is the whole batch by the caller's clock."""
    for number, (event, wall) in enumerate(zip(times.event_ms, times.wall_ms, strict=True)):
        if not math.isfinite(event) or event <= 0.0:
            return f"the events of run {number} say that it took {event:g} ms"
        if event > wall * (1.0 + _DRIFT) + _RESOLUTION_MS:
            return f"the events of run {number} say {event:.3f} ms, but it was over after {wall:.3f} ms"
    if times.device_s > caller_s * (1.0 + _DRIFT):
        return f"the events of all runs say {times.device_s:.3f} s, but they were over after {caller_s:.3f} s"
    allowed = max(_LEAST_MS, _EMPTY_FACTOR * median(times.empty_ms)) + _STEP_MS * steps
    unexplained = [
        wall - waited - event
        for wall, waited, event in zip(times.wall_ms, times.waited_ms, times.event_ms, strict=True)
    ]
    least = min(unexplained)
    if least > allowed:
        number = unexplained.index(least)
        return (
            f"the events of run {number} say {times.event_ms[number]:.3f} ms, but it took "
            f"{times.wall_ms[number]:.3f} ms by the processor's clock, and no run was nearer; beside its "
            f"kernels' own time a run takes less than {allowed:.3f} ms here"
        )
    return None
