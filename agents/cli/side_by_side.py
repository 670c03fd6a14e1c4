"""Two recorded runs in columns: how each ended, what it won and what it used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernel_scientist.agents import Run

from .judged import how_compared
from .text import columns, duration, interval, one_line

__all__ = ["run_values", "runs_table"]

_WIDEST = 48


def run_values(run: Run) -> dict[str, Any]:
    """A run's outcome as JSON values; `same_as` is equal for runs whose speed-ups mean the same."""
    info = run.info
    best, totals = info.best, info.totals
    return {
        "run": run.id,
        "problem": info.problem,
        "target": info.target,
        "device": info.device,
        "models": sorted(set(info.models.values())),
        "status": info.status,
        "stop_reason": info.stop_reason,
        "generations": info.generation,
        "best": None if best is None else best.candidate_id,
        "speedup": None if best is None else best.speedup.to_dict(),
        "tier": None if best is None else best.tier,
        "candidates": totals.candidates,
        "accepted": totals.accepted,
        "evaluations": totals.evaluations,
        "tokens": totals.prompt_tokens + totals.completion_tokens,
        "cost_usd": totals.cost_usd,
        "seconds": totals.seconds,
        "same_as": [info.problem_key, info.kernel_key, info.target, info.device],
    }


def runs_table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """One row a fact, one column a run."""
    names = [_column(values) for values in runs]
    rows = [[label, *(cells[label] for cells in names)] for label in names[0]]
    return columns(rows, header=["", "A", "B"])


def _column(values: dict[str, Any]) -> dict[str, str]:
    from kernel_scientist.tools.evaluation import Interval

    speedup = values["speedup"]
    cost = values["cost_usd"]
    cells = {
        "run": values["run"],
        "problem": values["problem"],
        "device": f"{values['target']}: {values['device']}",
        "models": ", ".join(values["models"]),
        "status": values["status"],
        "why it stopped": values["stop_reason"],
        "best": values["best"] or "none beat the start",
        "speed-up": "-" if speedup is None else interval(Interval.from_dict(speedup)),
        "measured": {"confirm": f"confirmed {how_compared(values['target'])}", None: "-"}.get(
            values["tier"], f"tier {values['tier']}, not confirmed"
        ),
        "generations": str(values["generations"]),
        "candidates": f"{values['candidates']}, {values['accepted']} accepted",
        "tokens": str(values["tokens"]),
        "cost": "not known" if cost is None else f"${cost:.4f}",
        "took": duration(values["seconds"]),
    }
    return {label: one_line(text, _WIDEST) for label, text in cells.items()}
