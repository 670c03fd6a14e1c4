"""Whether two experiments mean the same change, by rules first and the offline embedding model last.

The model's cosine alone does not tell a change from its opposite: over the pairs in the tests, those that
mean the same reach down to 0.39 and those that do not up to 0.99. So three rules come before it: the
strategies must be the same, values and figures must be the same, and words of contrast (load and store,
rows and columns, more and fewer) must not stand against each other. `CLOSE` is where, after those rules,
every pair of different changes lies below (docs/search.md has the figures). Missing a repetition costs an
evaluation, a false alarm a good idea: in doubt, two experiments differ.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from kernel_scientist.knowledge import Embedder, OfflineEmbedder

from ..messages import Experiment
from .strategy import strategy_named

__all__ = ["CLOSE", "Closeness", "Meaning", "rules_apart", "sets_values", "shared_meaning"]

CLOSE = 0.68
"""The cosine from which two experiments that no rule sets apart count as the same change."""

_SETTING = re.compile(
    r"\b([A-Z][A-Z0-9_]*)\b[^A-Za-z0-9\n]{0,3}(?:=|->|:=|to|becomes|of|is)?\s*(-?\d+(?:\.\d+)?)"
)
_SHIFT = re.compile(r"\b([A-Z][A-Z0-9_]*)\s+\S{1,12}\s*->\s*(-?\w+(?:\.\d+)?)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*[A-Za-z_])")
_CHARACTERS = 2_000
_CONTRASTS = tuple(
    (re.compile(rf"\b(?:{one})", re.IGNORECASE), re.compile(rf"\b(?:{other})", re.IGNORECASE))
    for one, other in (
        (r"load|read|fetch", r"stor(e|es|ing)\b|writ"),
        (r"rows?\b", r"columns?\b"),
        (
            r"more\b|larger|bigger|increas|rais|deeper|wider",
            r"fewer|less\b|smaller|decreas|lower\b|reduc\w+ the",
        ),
        (r"before\b", r"after\b"),
        (r"remov|without|drop\b|avoid\w* the", r"add\b|adding|introduc|insert"),
        (r"inner", r"outer"),
        (
            r"across (the )?(thread|work.?)?(block|group)s|over several blocks",
            r"within (one|a|the) (block|wave)",
        ),
        (r"(in|of) registers?\b", r"(in|of|into) (lds|shared)"),
        (r"matrix [ab]\b|\ba\b(?= tile| matrix)", r"matrix c\b|\bb\b(?= tile| matrix)"),
        (r"k dimension|\bk\b", r"[mn] dimension|\b[mn]\b"),
    )
)


def rules_apart(a: Experiment, b: Experiment) -> bool:
    """Whether the two are different changes for certain, by strategy, values, or words of contrast."""
    if strategy_named(a.strategy) != strategy_named(b.strategy):
        return True
    first, second = _text(a), _text(b)
    if _settings(first) != _settings(second) or _numbers_differ(first, second):
        return True
    return any(_stand_apart(first, second, one, other) for one, other in _CONTRASTS)


def _stand_apart(first: str, second: str, one: re.Pattern[str], other: re.Pattern[str]) -> bool:
    """Whether one text speaks only of the one thing and the other only of its contrary."""
    sides = [(bool(one.search(text)), bool(other.search(text))) for text in (first, second)]
    return sides[0] != sides[1] and all(a != b for a, b in sides)


def _numbers_differ(first: str, second: str) -> bool:
    """Whether both give as many figures, and not the same."""
    ours, theirs = _NUMBER.findall(first), _NUMBER.findall(second)
    return bool(ours) and len(ours) == len(theirs) and ours != theirs


def sets_values(experiment: Experiment) -> bool:
    """Whether the experiment is about values of constants."""
    return bool(_settings(_text(experiment)))


def _text(experiment: Experiment) -> str:
    return experiment.description[:_CHARACTERS]


def _settings(text: str) -> dict[str, str]:
    """Constants and the values a text gives them, such as ``TILE = 32`` or ``TILE 16 -> 32``."""
    found = dict(_SETTING.findall(text))
    return found | dict(_SHIFT.findall(text))


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
            similarity = float(self._vector(_text(new)) @ self._vector(_text(one)))
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
