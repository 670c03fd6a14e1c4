"""What measurements allow one to say, in sentences, and no more than that."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_scientist.sandbox.errors import UsageError

from .batches import Fault, shape_text
from .evaluation import Comparison, Evaluation, Interval, ShapeTiming, Verdict
from .kernel import Kernel
from .text import clean

__all__ = ["baseline_broke", "claim", "implausible", "no_comparison", "noise", "slowness"]


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


def noise(timings: Sequence[ShapeTiming], limit: float) -> list[str]:
    """A note when times of the same work differ by more than a quiet machine's do."""
    spread = max((timing.high_us - timing.low_us) / timing.time_us for timing in timings)
    if spread <= limit:
        return []
    return [f"the machine was noisy or busy: half of one shape's batches span {spread:.0%} of its time"]


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
