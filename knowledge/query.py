"""What kind of query it is, and its forms for the lexical and the vector side."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .glossary import expansions, plain_terms
from .identifiers import canonical, find_identifiers, split_parts

__all__ = ["Name", "Query", "QueryKind", "analyse"]

QueryKind = Literal["identifier", "abbreviation", "plain"]

# An identifier in more than this share of the chunks says little about which of them is meant.
_COMMON_SHARE = 0.1
_COMMON_FLOOR = 8
_MAX_TERMS = 64
# LDS, VGPRs, L2, MI300X, fp8: short, with capitals or digits, and the more telling for it.
_ABBREVIATION = re.compile(r"\b(?:[A-Z]{2,}[0-9]*s?|[A-Z][0-9]+|[A-Za-z]+[0-9]+[A-Za-z0-9]*)\b")


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier of the query: the FTS5 expression for its forms, and how telling it is (above 0)."""

    expression: str
    weight: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query made ready; FTS5 expressions are empty when they would match nothing.

    `names` are the identifiers that documents hold and that tell them apart. `words` are the query's own,
    `other_words` those that the glossary knows for them. `vector_text` is what the embedding model reads.
    """

    kind: QueryKind
    text: str
    vector_text: str
    names: tuple[Name, ...]
    words: str
    other_words: str


def analyse(text: str, occurrences: Callable[[str], int], chunks: int) -> Query:
    """Make `text` ready; `occurrences` says in how many of the `chunks` an identifier is."""
    identifiers = find_identifiers(text)
    names = tuple(
        name for one in identifiers if (name := _telling(canonical(one), occurrences, chunks)) is not None
    )
    others = expansions(text)
    kind: QueryKind = "plain"
    if names:
        kind = "identifier"
    elif others or identifiers or _ABBREVIATION.search(text):
        kind = "abbreviation"
    own = _terms(text) + [
        part for one in identifiers for part in split_parts(one) if part not in _stop_words()
    ]
    known = set(own)
    return Query(
        kind=kind,
        text=text,
        vector_text=f"{text} ({', '.join(others)})" if others else text,
        names=names,
        words=_any_of(own),
        other_words=_any_of(
            [term for other in others + plain_terms(text) for term in _terms(other) if term not in known]
        ),
    )


def _telling(forms: list[str], occurrences: Callable[[str], int], chunks: int) -> Name | None:
    """The name of these forms; ``None`` when no chunk or nearly every chunk holds it."""
    most = max(_COMMON_FLOOR, _COMMON_SHARE * chunks)
    counts = {form: count for form in forms if 0 < (count := occurrences(form)) <= most}
    if not counts:
        return None
    return Name(_any_of(list(counts)), math.log(1 + chunks / min(counts.values())))


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
