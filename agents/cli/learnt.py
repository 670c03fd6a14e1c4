"""What a run learnt of its strategies and of its predictions, as lines and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kernel_scientist.agents.policies.record import StrategyRecord, calibration_of, strategy_records
from kernel_scientist.agents.run import Candidate

from .text import columns, indent

__all__ = ["learnt_lines", "learnt_values"]

_HEADER = ("strategy", "tried", "accepted", "median uplift", "best uplift", "predicted ranges that held")


def learnt_lines(candidates: Sequence[Candidate]) -> list[str]:
    """A table of the strategies and a sentence on the predictions; nothing before the first finding."""
    records = strategy_records(candidates)
    if not records:
        return []
    table = columns([_row(one) for one in records], header=_HEADER)
    lines = ["", "what came of each strategy (uplift over the Base it was tried on)", *map(indent, table)]
    overall = calibration_of(candidates)
    return [*lines, f"predictions: {overall}"] if overall is not None else lines


def _row(record: StrategyRecord) -> tuple[str, ...]:
    held = record.calibration
    best = "" if record.best_id is None else f" ({record.best_id})"
    return (
        record.strategy,
        str(record.tried),
        str(record.accepted),
        _percent(record.median_uplift),
        f"{_percent(record.best_uplift)}{best}",
        "" if held is None else f"{held.within} of {held.measured}, off by {held.bias:+.1f} points",
    )


def learnt_values(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The same for JSON: `strategies` and `calibration` (null before the first measurement)."""
    overall = calibration_of(candidates)
    return {
        "strategies": [asdict(one) for one in strategy_records(candidates)],
        "calibration": None if overall is None else {**asdict(overall), "coverage": overall.coverage},
    }


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{value:+.1f} %"
