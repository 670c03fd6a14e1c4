"""What came of each strategy so far, and how well predictions held: for the Researcher and for the user."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

from ..messages import Experiment, Finding
from .strategy import strategy_named

__all__ = [
    "Calibration",
    "Judged",
    "StrategyRecord",
    "StrategyTally",
    "calibration_of",
    "strategy_records",
]

T = TypeVar("T")


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


@final
class _Predictions:
    """Predicted ranges against what was measured, kept up to date finding by finding."""

    def __init__(self) -> None:
        self._marks: Counter[str] = Counter()
        self._gaps: list[float] = []

    def add(self, finding: Finding) -> None:
        """Take in a finding; one that was not measured says nothing of its prediction."""
        if finding.measured_uplift is None or finding.calibration == "not measured":
            return
        self._marks[finding.calibration] += 1
        insort(self._gaps, finding.measured_uplift - (finding.predicted_min + finding.predicted_max) / 2)

    @property
    def calibration(self) -> Calibration | None:
        """How the predictions held; ``None`` before the first measurement."""
        if not self._gaps:
            return None
        return Calibration(
            measured=len(self._gaps),
            below=self._marks["below"],
            within=self._marks["within"],
            above=self._marks["above"],
            bias=_median(self._gaps),
        )


@final
class _OneStrategy:
    def __init__(self) -> None:
        self.tried = 0
        self.accepted = 0
        self.uplifts: list[tuple[float, str]] = []
        self.predictions = _Predictions()

    def add(self, finding: Finding) -> None:
        self.tried += 1
        self.accepted += finding.verdict == "accepted"
        if finding.measured_uplift is not None:
            insort(self.uplifts, (finding.measured_uplift, finding.candidate_id))
        self.predictions.add(finding)

    def record(self, name: str) -> StrategyRecord:
        best = self.uplifts[-1] if self.uplifts else None
        return StrategyRecord(
            strategy=name,
            tried=self.tried,
            accepted=self.accepted,
            median_uplift=_median([uplift for uplift, _ in _middle(self.uplifts)]) if best else None,
            best_uplift=None if best is None else best[0],
            best_id=None if best is None else best[1],
            calibration=self.predictions.calibration,
        )


@final
class StrategyTally:
    """What came of each strategy, and how all predictions held, kept up to date finding by finding."""

    def __init__(self) -> None:
        self._strategies: dict[str, _OneStrategy] = {}
        self._predictions = _Predictions()

    def add(self, judged: Judged) -> None:
        """Take in a kernel with its finding; without one there is nothing to count."""
        if judged.finding is None:
            return
        self._predictions.add(judged.finding)
        if judged.experiment is not None:
            name = strategy_named(judged.experiment.strategy)
            self._strategies.setdefault(name, _OneStrategy()).add(judged.finding)

    @property
    def records(self) -> tuple[StrategyRecord, ...]:
        """A record for each strategy that was tried, the one with the best uplift first."""
        records = [one.record(name) for name, one in self._strategies.items()]
        return tuple(sorted(records, key=lambda one: (_worth(one.best_uplift), one.strategy)))

    @property
    def calibration(self) -> Calibration | None:
        """How the predictions of all findings held; ``None`` before the first measurement."""
        return self._predictions.calibration


def strategy_records(judged: Iterable[Judged]) -> tuple[StrategyRecord, ...]:
    """A record for each strategy that was tried, the one with the best uplift first."""
    return _tally(judged).records


def calibration_of(judged: Iterable[Judged]) -> Calibration | None:
    """How the predictions of the findings held; ``None`` before the first measurement."""
    return _tally(judged).calibration


def _tally(judged: Iterable[Judged]) -> StrategyTally:
    tally = StrategyTally()
    for one in judged:
        tally.add(one)
    return tally


def _worth(uplift: float | None) -> float:
    return float("inf") if uplift is None else -uplift


def _median(ordered: Sequence[float]) -> float:
    middle = _middle(ordered)
    return sum(middle) / len(middle)


def _middle(ordered: Sequence[T]) -> Sequence[T]:
    """The one or two in the middle of a sequence in order."""
    half = len(ordered) // 2
    return ordered[half : half + 1] if len(ordered) % 2 else ordered[half - 1 : half + 1]
