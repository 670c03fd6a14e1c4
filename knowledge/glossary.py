"""The field's abbreviations and terms, and what people say for them (`data/glossary.toml`)."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["expansions", "plain_terms"]


@dataclass(frozen=True, slots=True)
class _Term:
    short: re.Pattern[str]
    long: re.Pattern[str]
    shortest: str
    words: tuple[str, ...]


def expansions(query: str) -> list[str]:
    """Other words for what `query` abbreviates, or spells out; none that it already holds."""
    found: list[str] = []
    for term in _glossary().terms:
        if term.short.search(query):
            found.extend(term.words)
        elif term.long.search(query):
            found.extend((term.shortest, *term.words))
    return _new(found, query)


def plain_terms(query: str) -> list[str]:
    """The field's terms for what `query` says in plain words; none that it already holds."""
    return _new([word for said, words in _glossary().plain if said.search(query) for word in words], query)


@dataclass(frozen=True, slots=True)
class _Glossary:
    terms: tuple[_Term, ...]
    plain: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]


@functools.cache
def _glossary() -> _Glossary:
    table = tomllib.loads((Path(__file__).parent / "data" / "glossary.toml").read_text())
    terms = tuple(
        _Term(
            _any_of(entry["short"], 0 if entry.get("exact") else re.IGNORECASE),
            _any_of(entry["long"], re.IGNORECASE),
            entry["short"][0],
            tuple(entry["long"]),
        )
        for entry in table["term"]
    )
    plain = tuple((_any_of(entry["said"], re.IGNORECASE), tuple(entry["term"])) for entry in table["plain"])
    return _Glossary(terms, plain)


def _new(words: Sequence[str], query: str) -> list[str]:
    lowered = query.lower()
    return [word for word in dict.fromkeys(words) if word.lower() not in lowered]


def _any_of(words: Sequence[str], flags: int) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", flags)
