"""What kind of query it is, and its forms for the lexical and the vector side."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .glossary import expansions
from .identifiers import canonical, find_identifiers, split_parts

__all__ = ["Query", "QueryKind", "analyse"]

QueryKind = Literal["identifier", "abbreviation", "plain"]

# An identifier in more than this share of the chunks says little about which of them is meant.
_COMMON_SHARE = 0.1
_COMMON_FLOOR = 8
_MAX_TERMS = 64


@dataclass(frozen=True, slots=True)
class Query:
    """A query made ready; the FTS5 expressions are empty when they would match nothing."""

    kind: QueryKind
    text: str
    vector_text: str
    identifiers: str
    words: str
    expanded_words: str


def analyse(text: str, occurrences: Callable[[str], int], chunks: int) -> Query:
    """Make `text` ready; `occurrences` says in how many of the `chunks` an identifier is."""
    names = find_identifiers(text)
    telling: list[str] = []
    for name in names:
        known = [
            form
            for form in canonical(name)
            if 0 < occurrences(form) <= max(_COMMON_FLOOR, _COMMON_SHARE * chunks)
        ]
        telling.extend(known)
    others = expansions(text)
    terms = _terms(text) + [part for name in names for part in split_parts(name) if part not in _stop_words()]
    extra = [term for other in others for term in _terms(other)]
    kind: QueryKind = "identifier" if telling else "abbreviation" if others or names else "plain"
    return Query(
        kind=kind,
        text=text,
        vector_text=f"{text} ({', '.join(others)})" if others else text,
        identifiers=_any_of(telling),
        words=_any_of(terms),
        expanded_words=_any_of(terms + extra) if extra else "",
    )


def _terms(text: str) -> list[str]:
    # As FTS5's unicode61 sees words: letters and digits, nothing else.
    words = (word.lower() for word in re.findall(r"[^\W_]+", text))
    return [word for word in words if word not in _stop_words()]


def _any_of(terms: list[str]) -> str:
    quoted = (f'"{term}"' for term in list(dict.fromkeys(terms))[:_MAX_TERMS])
    return " OR ".join(quoted)


@functools.cache
def _stop_words() -> frozenset[str]:
    return frozenset((Path(__file__).parent / "data" / "stop_words.txt").read_text().split())
