"""The field's abbreviations, and the words documents use for them (`data/glossary.toml`)."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["expansions"]


@dataclass(frozen=True, slots=True)
class _Term:
    short: re.Pattern[str]
    long: re.Pattern[str]
    shortest: str
    words: tuple[str, ...]


def expansions(query: str) -> list[str]:
    """Other words for what `query` abbreviates, or spells out; none that it already holds."""
    lowered = query.lower()
    found: list[str] = []
    for term in _terms():
        if term.short.search(query):
            found.extend(term.words)
        elif term.long.search(query):
            found.extend((term.shortest, *term.words))
    return [word for word in dict.fromkeys(found) if word.lower() not in lowered]


@functools.cache
def _terms() -> tuple[_Term, ...]:
    table = tomllib.loads((Path(__file__).parent / "data" / "glossary.toml").read_text())
    return tuple(
        _Term(
            _any_of(entry["short"], 0 if entry.get("exact") else re.IGNORECASE),
            _any_of(entry["long"], re.IGNORECASE),
            entry["short"][0],
            tuple(entry["long"]),
        )
        for entry in table["term"]
    )


def _any_of(words: Sequence[str], flags: int) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", flags)
