"""What measurements allow one to say, in sentences, and no more than that."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.load import LoadSample, Strain

from .batches import Fault, shape_text
from .evaluation import Comparison, Evaluation, Interval, ShapeTiming, Verdict
from .kernel import Kernel
from .text import clean
from .timing import Measurement

__all__ = ["baseline_broke", "busy", "claim", "implausible", "method", "no_comparison", "noise", "slowness"]


def baseline_broke(baseline: Kernel, message: str) -> UsageError:
    """The user's error when the kernel that others are measured against fails beside them."""
    name = baseline.path if baseline.path is not None else f"kernel {baseline.key[:12]}"
    evidence = " ".join(clean(message, 600).split())
    return UsageError(f"{name}: cannot serve as the baseline, it failed beside a candidate: {evidence}")


def implausible(timing: ShapeTiming, share: float) -> Fault | None:
    """The fault of a time below `share` of its bound, which nothing explains but a trick."""
    if timing.bound_us is None or timing.time_us >= timing.bound_us * share:
        return None
    message = (
        f"on shape {shape_text(timing.shape)}: {timing.time_us:.3g} us a run is faster than {share:g} times "
        f"the {timing.bound_us:.3g} us that this device's {timing.bound_by} rate allows; the work cannot "
        "have been done, or the problem's flops and bytes say too much"
    )
    return Fault(Verdict.IMPLAUSIBLE, message)


def slowness(timing: ShapeTiming, factor: float) -> list[str]:
    """A note on a kernel so slow that it was measured with few pairs."""
    if timing.baseline_us is None or timing.time_us <= factor * timing.baseline_us:
        return []
    where = shape_text(timing.shape)
    return [
        f"{where}: more than {factor:g} times slower than the baseline, so timed with {timing.batches} pairs"
    ]


def method(measured: Sequence[Measurement], caches: str) -> str:
    """How times and ratios came about, in one sentence; `caches` is the device's policy."""
    clocks = {one.clock for one in measured}
    clock = clocks.pop() if len(clocks) == 1 else "wall time"
    pairs = ""
    if len(measured[0].batches) > 1:
        pairs = (
            " in pairs of random order, their number fixed before the first; ratios are Hodges-Lehmann "
            "estimates with signed-rank intervals, widened for what pairs do not average out"
        )
    return f"{clock}, fresh workers{pairs}; {caches}"


def noise(measured: Sequence[Measurement], limit: float) -> list[str]:
    """What batches of the same kernel differ by (A/A), and whether their times were steady."""
    worst = max(one.noise for one in measured)
    loud = ", which is noisy: small differences cannot be told" if worst > limit else ""
    notes = [f"noise of the machine: a pair of batches of the same kernel differs by {worst:.1%} (A/A){loud}"]
    unsettled = sum(not one.warm.settled for one in measured)
    if unsettled:
        notes.append(
            f"times were not steady when the warm-up ended, on {unsettled} of {len(measured)} shapes"
        )
    return notes


def busy(before: LoadSample | None, strain: Strain | None, waited: float | None, limit: float) -> list[str]:
    """A note on what else had the cores while kernels were timed; `limit` is in cores or shares of one."""
    parts: list[str] = []
    if strain is not None and strain.others > limit:
        parts.append(f"other programs used {strain.others:.1f} of {strain.cores} cores")
    if strain is not None and strain.stolen > limit:
        parts.append(f"its host took {strain.stolen:.1f} of {strain.cores} cores away")
    if waited is not None and waited > limit:
        parts.append(f"workers waited for their core {waited:.0%} of the time")
    if not parts:
        return []
    load = f" (load average {before.waiting:.1f} before)" if before is not None else ""
    return [f"the machine was busy while kernels were timed: {', '.join(parts)}{load}"]


def no_comparison(a: Evaluation, b: Evaluation, level: float, which: str) -> Comparison:
    """What is known when one of the two is not accepted: nothing, which the widest interval says."""
    failed = b if which == "B" else a
    text = f"no claim: {which} is not accepted ({failed.verdict.value})"
    return Comparison(a, b, (), Interval(1.0, 0.0, math.inf, level), text)


def claim(speedup: Interval) -> str:
    """What the interval lets one say, in one sentence."""
    span = f"{speedup.value:.3f} times [{speedup.low:.3f}, {speedup.high:.3f}] at {speedup.level:.1%}"
    if speedup.low > 1.0:
        return f"B is faster than A: {span}"
    if speedup.high < 1.0:
        return f"B is slower than A: {span}"
    return f"no difference is established: B's speed is A's {span}"
