"""Scores of several kinds on one scale, and their weighted sum.

Sums of scores, not of reciprocal ranks, since ranks forget by how much a passage leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .query import QueryKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WEIGHTS", "Weights", "above_floor", "fused", "of_best", "towards"]


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part of the score counts for a kind of query.

    `identifiers` counts the share of the query's identifiers that a passage holds, `naming` how prominent
    they are in it. `plain` counts what the glossary knows for the query's words. `feedback` is how far
    the query's vector moves towards the passages that lead at first.
    """

    words: float
    vectors: float
    identifiers: float = 0.0
    naming: float = 0.0
    plain: float = 0.2
    feedback: float = 0.0


# Chosen on the tuning half of the benchmark's questions. `identifiers` is above all else together, so that a
# passage that holds the identifier is ahead of all that do not.
WEIGHTS: dict[QueryKind, Weights] = {
    "identifier": Weights(words=0.7, vectors=0.3, identifiers=1.5, naming=0.2),
    "abbreviation": Weights(words=0.5, vectors=0.5, plain=0.05, feedback=0.5),
    "plain": Weights(words=0.5, vectors=0.5, feedback=0.5),
}


def of_best(scores: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Scores as shares of the best one."""
    best = max((score for _, score in scores), default=0.0)
    return {number: score / best for number, score in scores} if best > 0 else {}


def above_floor(scores: Mapping[int, float], floor: float) -> dict[int, float]:
    """Scores as their distance above `floor`, 1 for the best; those below it are left out."""
    best = max(scores.values(), default=floor)
    if best <= floor:
        return dict.fromkeys((number for number, score in scores.items() if score >= floor), 1.0)
    return {
        number: (score - floor) / (best - floor) for number, score in sorted(scores.items()) if score >= floor
    }


def fused(parts: Iterable[tuple[float, Mapping[int, float]]]) -> dict[int, float]:
    """The weighted sum of the parts as a share of what is possible: 1 for a chunk that leads all of them."""
    given = [(weight, scores) for weight, scores in parts if scores and weight > 0]
    most = sum(weight for weight, _ in given)
    total: dict[int, float] = {}
    for weight, scores in given:
        for number, score in scores.items():
            total[number] = total.get(number, 0.0) + weight * score / most
    return total


def towards(
    vector: NDArray[np.float32], rows: NDArray[np.float32], scores: Sequence[float], share: float
) -> NDArray[np.float32]:
    """`vector` moved by `share` of the rows' mean, weighted by their scores (Rocchio), of length 1."""
    import numpy as np

    weights = np.asarray(scores, np.float32)
    moved = vector + share * (weights / weights.sum()) @ rows
    unit: NDArray[np.float32] = (moved / max(float(np.linalg.norm(moved)), 1e-12)).astype(np.float32)
    return unit
