"""What sets two experiments apart by rule, and experiments filed by it, so that few need a closer look.

Three rules: the strategies must be the same, values and figures must be the same, and words of contrast
(load and store, rows and columns, more and fewer) must not stand against each other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, final

from ..messages import Experiment
from .strategy import strategy_named

__all__ = ["Change", "TriedChanges", "change_of", "looked_at"]

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


@dataclass(frozen=True, slots=True)
class Change:
    """What the rules compare. `sides` says of each pair of contrary things which of them is spoken of."""

    strategy: str
    settings: frozenset[tuple[str, str]]
    figures: tuple[str, ...]
    sides: tuple[tuple[bool, bool], ...]

    def apart(self, other: Change) -> bool:
        """Whether the two are different changes for certain."""
        if self.strategy != other.strategy or self.settings != other.settings:
            return True
        if self.figures and len(self.figures) == len(other.figures) and self.figures != other.figures:
            return True
        # One speaks only of the one thing, and the other only of its contrary.
        return any(
            ours[0] != ours[1] and theirs == (ours[1], ours[0])
            for ours, theirs in zip(self.sides, other.sides, strict=True)
        )


def looked_at(experiment: Experiment) -> str:
    """The part of an experiment's description that is compared."""
    return experiment.description[:_CHARACTERS]


def change_of(experiment: Experiment) -> Change:
    """What the rules see in an experiment."""
    return _change(strategy_named(experiment.strategy), looked_at(experiment))


# An experiment is compared again and again as long as its Base is built on.
@functools.lru_cache(maxsize=2_048)
def _change(strategy: str, text: str) -> Change:
    settings = dict(_SETTING.findall(text)) | dict(_SHIFT.findall(text))
    sides = tuple((bool(one.search(text)), bool(other.search(text))) for one, other in _CONTRASTS)
    return Change(strategy, frozenset(settings.items()), tuple(_NUMBER.findall(text)), sides)


class _Tried(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def experiment(self) -> Experiment | None: ...


T = TypeVar("T", bound=_Tried)
_Place = tuple[str, frozenset[tuple[str, str]]]


@final
class TriedChanges(Generic[T]):
    """Tried experiments, filed by strategy, values and figures, so that few are looked at."""

    def __init__(self) -> None:
        self._filed: dict[_Place, dict[int, dict[tuple[str, ...], list[T]]]] = {}

    def add(self, tried: T) -> None:
        """File one that has an experiment."""
        change = _change_made_by(tried)
        by_count = self._filed.setdefault((change.strategy, change.settings), {})
        by_count.setdefault(len(change.figures), {}).setdefault(change.figures, []).append(tried)

    def like(self, experiment: Experiment) -> list[T]:
        """Those that no rule sets apart from `experiment`, in the order of their ids."""
        change = change_of(experiment)
        found = [one for one in self.near(change) if not change.apart(_change_made_by(one))]
        return sorted(found, key=lambda one: int(one.id))

    def near(self, change: Change) -> Iterator[T]:
        """Those that must be looked at: the others have another strategy, other values or figures."""
        for count, by_figures in self._filed.get((change.strategy, change.settings), {}).items():
            if count and count == len(change.figures):
                yield from by_figures.get(change.figures, ())
            else:
                for members in by_figures.values():
                    yield from members


def _change_made_by(tried: _Tried) -> Change:
    assert tried.experiment is not None
    return change_of(tried.experiment)
