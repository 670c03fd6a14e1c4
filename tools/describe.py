"""An evaluation in a few lines of text for a model or a terminal."""

from __future__ import annotations

from kernel_scientist.sandbox.resources import KernelResources

from .batches import shape_text
from .evaluation import Evaluation, Interval, ShapeTiming
from .text import clean, quoted

__all__ = ["describe", "resources_line"]

_MAX_CHARACTERS = 6000
_MAX_LINES = 40


def describe(evaluation: Evaluation) -> str:
    """Verdict, evidence, times with their uncertainty, and the gfx942 report; at most 6,000 characters."""
    lines = [
        f"verdict: {evaluation.verdict.value} ({evaluation.tier} tier, target {evaluation.target}, "
        f"{evaluation.device}, sandbox {evaluation.sandbox})"
    ]
    if evaluation.message:
        # Marked line by line: the compiler quotes the candidate, which may write lines like those here.
        lines.append(f"evidence: {quoted(evaluation.message)}")
    if evaluation.speedup is not None:
        lines.append(f"speed-up over the baseline, geometric mean: {interval_text(evaluation.speedup)}")
    lines += [_timing_line(timing) for timing in evaluation.timings]
    if evaluation.method:
        lines.append(f"timed: {evaluation.method}")
    lines += [f"gfx942 {resources_line(item)}" for item in evaluation.resources]
    if not evaluation.resources and evaluation.resources_note:
        lines.append(f"gfx942: {evaluation.resources_note}")
    passed = [check.name for check in evaluation.checks if check.passed]
    if not evaluation.accepted and passed:
        lines.append(f"passed before that: {', '.join(passed)}")
    lines += [f"note: {note}" for note in evaluation.notes]
    return clean("\n".join(lines[:_MAX_LINES]), _MAX_CHARACTERS)


def interval_text(interval: Interval) -> str:
    """A ratio as ``1.52x [1.48, 1.56] at 99 %``."""
    return f"{interval.value:.3g}x [{interval.low:.3g}, {interval.high:.3g}] at {100 * interval.level:.3g} %"


def resources_line(item: KernelResources) -> str:
    """The compiler's report of one kernel in a line."""
    spills = item.vgpr_spills + item.sgpr_spills
    counts = ", ".join(f"{count} {group}" for group, count in item.instructions.items() if count)
    return (
        f"{item.kernel}: {item.vgprs} VGPR, {item.agprs} AGPR, {item.sgprs} SGPR, {spills} spilled, "
        f"{item.lds_bytes} B LDS, {item.scratch_bytes} B scratch, occupancy {item.occupancy} waves/SIMD "
        f"(limited by {item.limited_by}); instructions: {counts or 'not counted'}"
    )


def _timing_line(timing: ShapeTiming) -> str:
    line = (
        f"{shape_text(timing.shape)}: {timing.time_us:.4g} us a run (quartiles {timing.low_us:.4g} to "
        f"{timing.high_us:.4g}, {timing.batches} batches of {timing.launches_per_batch})"
    )
    if timing.baseline_us is not None:
        line += f", baseline {timing.baseline_us:.4g} us"
    if timing.speedup is not None:
        line += f", speed-up {interval_text(timing.speedup)}"
    if timing.bound_us is not None:
        line += f", {timing.bound_us / timing.time_us:.1%} of the speed of light ({timing.bound_by})"
    return line
