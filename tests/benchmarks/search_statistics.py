"""How two strategies' runs compare: the ratio of mean fractions of the optimum, by paired bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Comparison", "at_levels", "compare"]

RESAMPLES = 4_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """One strategy's mean fraction over another's, with a 95 % interval over the runs."""

    ratio: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """Ahead and behind are said only where the whole interval is on one side of 1."""
        return "ahead" if self.low > 1.0 else "behind" if self.high < 1.0 else "level"

    def __str__(self) -> str:
        return f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}) {self.word}"


def at_levels(
    curves: list[list[float | None]], optimum: float, levels: tuple[int, ...]
) -> NDArray[np.float64]:
    """A row for each run: the fraction of the optimum at each level, 0 where nothing had passed.

    A run that ended early keeps what it had.
    """
    rows = [[curve[min(level, len(curve)) - 1] if curve else None for level in levels] for curve in curves]
    return np.array([[0.0 if best is None else optimum / best for best in row] for row in rows])


def compare(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> Comparison:
    """Of the fractions of as many runs, in pairs. Where neither found anything they are level."""
    assert ours.shape == theirs.shape
    draws = np.random.default_rng(0).integers(0, len(ours), (RESAMPLES, len(ours)))
    ratios = _ratio(ours[draws].mean(axis=1), theirs[draws].mean(axis=1))
    side = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(ratios, [side, 1.0 - side], method="nearest")
    return Comparison(float(_ratio(ours.mean(), theirs.mean())), float(low), float(high))


def _ratio(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    nothing = np.where(ours > 0.0, np.inf, 1.0)
    return np.where(theirs > 0.0, ours / np.where(theirs > 0.0, theirs, 1.0), nothing)
