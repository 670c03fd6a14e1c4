"""Measured values as JSON: JSON has no infinity, so an open interval ends in ``null``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

from kernel_scientist.tools.evaluation import Evaluation, Interval, ShapeTiming

__all__ = [
    "Json",
    "evaluation_values",
    "finite",
    "interval_values",
    "json_list",
    "light_share",
    "timing_values",
]

Json = dict[str, Any]


def interval_values(interval: Interval | None) -> Json | None:
    """The interval, or ``None`` for what was not measured."""
    return None if interval is None else interval.to_dict()


def json_list(value: object) -> list[Any]:
    """The items of a JSON array; none where it is something else."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


def light_share(timing: ShapeTiming) -> float | None:
    """Speed-of-light time over measured time; ``None`` when the peak is not known."""
    if timing.bound_us is None or timing.time_us <= 0:
        return None
    return timing.bound_us / timing.time_us


def timing_values(timing: ShapeTiming) -> Json:
    """One shape's times with its share of the speed of light."""
    return {**timing.to_dict(), "light_share": light_share(timing)}


def evaluation_values(evaluation: Evaluation) -> Json:
    """The evaluation with its geometric mean time."""
    values = evaluation.to_dict()
    values["timings"] = [timing_values(timing) for timing in evaluation.timings]
    return {**values, "time_us": evaluation.time_us}


def finite(value: object) -> object:
    """`value` with ``None`` for the numbers that JSON does not know; only a damaged record holds any."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(one) for name, one in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in cast("list[object]", value)]
    return value
