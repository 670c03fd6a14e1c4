"""Whether two experiments mean the same change, by rules first and the offline embedding model last.

The model's cosine alone does not tell a change from its opposite: over the pairs in the tests, those that
mean the same reach down to 0.39 and those that do not up to 0.99. So rules come before it (`changes`).
`CLOSE` is where, after those rules, every pair of different changes lies below (docs/search.md has the
figures). Missing a repetition costs an evaluation, a false alarm a good idea: in doubt, two experiments
differ.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from kernel_scientist.knowledge import Embedder, OfflineEmbedder

from ..messages import Experiment
from .changes import change_of, looked_at

__all__ = ["CLOSE", "Closeness", "Meaning", "rules_apart", "sets_values", "shared_meaning"]

CLOSE = 0.68
"""The cosine from which two experiments that no rule sets apart count as the same change."""


def rules_apart(a: Experiment, b: Experiment) -> bool:
    """Whether the two are different changes for certain, by strategy, values, or words of contrast."""
    return change_of(a).apart(change_of(b))


def sets_values(experiment: Experiment) -> bool:
    """Whether the experiment is about values of constants."""
    return bool(change_of(experiment).settings)


@dataclass(frozen=True, slots=True)
class Closeness:
    """The nearest of some experiments: its place among them, and the cosine."""

    index: int
    similarity: float


class Meaning(Protocol):
    """Finds which of some experiments means the same as a new one."""

    def nearest(self, new: Experiment, known: Iterable[Experiment]) -> Closeness | None:
        """The closest that counts as the same; ``None`` when there is none."""
        ...


@final
class EmbeddedMeaning:
    """By an embedder; a text is embedded once in a run and only when the rules leave a doubt."""

    def __init__(self, embedder: Embedder, threshold: float = CLOSE) -> None:
        self._embedder = embedder
        self._threshold = threshold
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def nearest(self, new: Experiment, known: Iterable[Experiment]) -> Closeness | None:
        best: Closeness | None = None
        for index, one in enumerate(known):
            if rules_apart(new, one):
                continue
            similarity = float(self._vector(looked_at(new)) @ self._vector(looked_at(one)))
            if similarity >= self._threshold and (best is None or similarity > best.similarity):
                best = Closeness(index, similarity)
        return best

    def _vector(self, text: str) -> NDArray[np.float32]:
        if text not in self._vectors:
            self._vectors[text] = self._embedder.embed([text])[0]
        return self._vectors[text]


@functools.cache
def _embedder() -> OfflineEmbedder:
    """One for the process: loading the model takes longer than using it."""
    return OfflineEmbedder()


def shared_meaning(threshold: float = CLOSE) -> EmbeddedMeaning:
    """By the offline embedding model, which is loaded when the first doubt arises."""
    return EmbeddedMeaning(_embedder(), threshold)
