"""What the judge said, as lines for a person: verdict, checks, times per shape, gfx942 resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_scientist.sandbox.resources import KernelResources
from kernel_scientist.tools.evaluation import Evaluation, ShapeTiming
from kernel_scientist.tools.problem import RECORDED

from .text import clean, columns, interval, percent, shape_text, time_text

__all__ = ["how_compared", "light_share", "resource_lines", "timing_lines", "verdict_line"]

# Characters of a kernel's name: a template-id may be long.
_KERNEL_NAME = 48

# Instruction groups worth a line of their own, in the order of interest.
_INSTRUCTIONS = (
    "mfma",
    "global_load",
    "global_store",
    "lds_read",
    "lds_write",
    "atomic",
    "barrier",
    "valu",
    "salu",
)


def how_compared(target: str) -> str:
    """How kernels were compared before a claim."""
    return "by the recording" if target.startswith(RECORDED) else "in fresh pairs"


def verdict_line(evaluation: Evaluation) -> str:
    """The verdict with the overall figures, or with the first line of the evidence."""
    if not evaluation.accepted:
        first = clean(evaluation.message).strip().splitlines()
        return f"{evaluation.verdict.value}: {first[0] if first else 'no evidence was given'}"
    parts = [f"accepted ({evaluation.tier})", f"{time_text(evaluation.time_us)} a run"]
    if evaluation.kernel_key == evaluation.baseline_key:
        parts.append("it is the starting kernel")
    elif evaluation.speedup is not None:
        parts.append(f"{interval(evaluation.speedup)} over the starting kernel")
    return ", ".join(parts)


def timing_lines(timings: Iterable[ShapeTiming]) -> list[str]:
    """A table of shapes: time with its quartiles, speed-up with its interval, share of the speed of light."""
    rows = [
        (
            shape_text(timing.shape),
            time_text(timing.time_us),
            f"{time_text(timing.low_us)} to {time_text(timing.high_us)}",
            interval(timing.speedup),
            _light(timing),
        )
        for timing in timings
    ]
    header = ("shape", "time", "quartiles", "speed-up", "of the speed of light")
    return columns(rows, header=header) if rows else ["not timed"]


def light_share(timing: ShapeTiming) -> float | None:
    """Speed-of-light time over measured time; ``None`` when the peak is not known."""
    if timing.bound_us is None or timing.time_us <= 0:
        return None
    return timing.bound_us / timing.time_us


def _light(timing: ShapeTiming) -> str:
    share = light_share(timing)
    by = f" ({timing.bound_by})" if share is not None and timing.bound_by else ""
    return percent(share) + by


def resource_lines(named: Sequence[tuple[str, Evaluation]]) -> list[str]:
    """The gfx942 reports of evaluations side by side, one column a kernel; else why there is none."""
    reports = [(name, one) for name, evaluation in named for one in evaluation.resources]
    if not reports:
        notes = {evaluation.resources_note for _, evaluation in named if evaluation.resources_note}
        return sorted(notes) or ["no report"]
    header = ["", *(f"{name}: {one.kernel[:_KERNEL_NAME]}" for name, one in reports)]
    cells = [_resource_cells(one) for _, one in reports]
    rows = [[label, *(cell[label] for cell in cells)] for label in cells[0]]
    kept = [row for row in rows if row[0] not in _INSTRUCTIONS or any(value != "0" for value in row[1:])]
    remarks = {one.resources_note: name for name, one in named if one.resources_note}
    shown = list(remarks) if len(remarks) < 2 else [f"{name}: {note}" for note, name in remarks.items()]
    return [*columns(kept, header=header), *shown]


def _resource_cells(one: KernelResources) -> dict[str, str]:
    cells = {
        "VGPRs + AGPRs": f"{one.vgprs} + {one.agprs}",
        "SGPRs": str(one.sgprs),
        "spilled VGPRs, SGPRs": f"{one.vgpr_spills}, {one.sgpr_spills}",
        "LDS bytes": str(one.lds_bytes),
        "scratch bytes": str(one.scratch_bytes),
        "occupancy": f"{one.occupancy} waves/SIMD, by {one.limited_by}",
    }
    return cells | {name: str(one.instructions.get(name, 0)) for name in _INSTRUCTIONS}
