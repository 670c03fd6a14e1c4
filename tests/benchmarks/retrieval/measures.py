"""How good rankings are: recall at 1 and 5 and mean reciprocal rank, with how far chance may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEPTH", "Interval", "difference", "measure"]

# Further down nobody looks.
DEPTH = 10
_DRAWS = 2000
_LEVEL = 95.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its 95 per cent bootstrap interval over the questions."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.2f}-{self.high:.2f})"


def measure(ranks: Sequence[int | None]) -> tuple[Interval, Interval, Interval]:
    """Recall at 1, recall at 5 and mean reciprocal rank of the first right passages' ranks, from 1."""
    at_1 = np.array([rank == 1 for rank in ranks], float)
    at_5 = np.array([rank is not None and rank <= 5 for rank in ranks], float)
    return _interval(at_1), _interval(at_5), _interval(_reciprocal(ranks))


def difference(ranks: Sequence[int | None], others: Sequence[int | None]) -> Interval:
    """By how much the mean reciprocal rank is above that of another ranking of the same questions."""
    return _interval(_reciprocal(ranks) - _reciprocal(others))


def _reciprocal(ranks: Sequence[int | None]) -> NDArray[np.float64]:
    return np.array([1 / rank if rank else 0.0 for rank in ranks])


def _interval(values: NDArray[np.float64]) -> Interval:
    draws = np.random.default_rng(0).integers(0, len(values), (_DRAWS, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [(100 - _LEVEL) / 2, (100 + _LEVEL) / 2])
    return Interval(float(values.mean()), float(low), float(high))
