"""What came of each strategy so far, and how well predictions held: for the Researcher and for the user."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..messages import Experiment, Finding
from .strategy import strategy_named

__all__ = ["Calibration", "Judged", "StrategyRecord", "calibration_of", "strategy_records"]


class Judged(Protocol):
    """A kernel with the experiment it came from and what was found: a `Member` or a `Candidate`."""

    @property
    def id(self) -> str: ...

    @property
    def experiment(self) -> Experiment | None: ...

    @property
    def finding(self) -> Finding | None: ...


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predicted ranges of uplift against what was measured, over `measured` findings.

    `bias` is the median of measured uplift less the middle of its range, in percentage points: below zero
    the predictions promise too much.
    """

    measured: int
    below: int
    within: int
    above: int
    bias: float

    @property
    def coverage(self) -> float:
        """The share of ranges that held the measured uplift."""
        return self.within / self.measured

    def __str__(self) -> str:
        return (
            f"{self.within} of {self.measured} predicted ranges held the measured uplift "
            f"({100 * self.coverage:.0f} %), {self.below} promised too much, {self.above} too little; "
            f"measured less predicted middle: {self.bias:+.1f} points in the median"
        )


@dataclass(frozen=True, slots=True)
class StrategyRecord:
    """One strategy over the run: experiments `tried` to their end, `accepted` kernels among them.

    Uplifts are percent over the Base; `best_id` is the candidate with the best one. ``None``: not measured.
    """

    strategy: str
    tried: int
    accepted: int
    median_uplift: float | None
    best_uplift: float | None
    best_id: str | None
    calibration: Calibration | None


def strategy_records(judged: Iterable[Judged]) -> tuple[StrategyRecord, ...]:
    """A record for each strategy that was tried, the one with the best uplift first."""
    findings: dict[str, list[Finding]] = {}
    for one in judged:
        if one.experiment is not None and one.finding is not None:
            findings.setdefault(strategy_named(one.experiment.strategy), []).append(one.finding)
    records = [_record(name, found) for name, found in findings.items()]
    return tuple(sorted(records, key=lambda one: (_worth(one.best_uplift), one.strategy)))


def _worth(uplift: float | None) -> float:
    return float("inf") if uplift is None else -uplift


def _record(name: str, findings: Sequence[Finding]) -> StrategyRecord:
    measured = [
        (one.measured_uplift, one.candidate_id) for one in findings if one.measured_uplift is not None
    ]
    best = max(measured, default=None)
    return StrategyRecord(
        strategy=name,
        tried=len(findings),
        accepted=sum(one.verdict == "accepted" for one in findings),
        median_uplift=statistics.median(uplift for uplift, _ in measured) if measured else None,
        best_uplift=None if best is None else best[0],
        best_id=None if best is None else best[1],
        calibration=calibration_of(findings),
    )


def calibration_of(findings: Iterable[Finding]) -> Calibration | None:
    """How the predictions of `findings` held; ``None`` before the first measurement."""
    measured = [
        (one.calibration, one.measured_uplift - (one.predicted_min + one.predicted_max) / 2)
        for one in findings
        if one.measured_uplift is not None and one.calibration != "not measured"
    ]
    if not measured:
        return None
    marks = [mark for mark, _ in measured]
    return Calibration(
        measured=len(marks),
        below=marks.count("below"),
        within=marks.count("within"),
        above=marks.count("above"),
        bias=statistics.median(gap for _, gap in measured),
    )
