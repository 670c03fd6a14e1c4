"""Which of the ranked passages are shown: near-duplicates merged, and no document and no kind crowding out.

- A passage that nearly repeats a better one is left out and named there.
- One document has at most three passages, or half of the places when that is less, unless no others are left.
  Passages that hold an identifier of the query may take more, but leave a quarter of the places to others.
- Experience, the findings of runs, has at most half of the places (rounded up) as long as there is literature
  to fill the others: a hundred runs on one kernel must not hide what papers say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from .records import Passage

__all__ = ["distinct", "shared_out"]

_SAME_TEXT = 0.8
_SHINGLE = 3
_PER_DOCUMENT = 3


def distinct(passages: Iterable[Passage], enough: int) -> list[Passage]:
    """Leave out passages that nearly repeat a better one, and name them there; stop at `enough`."""
    kept: list[tuple[Passage, set[str]]] = []
    for passage in passages:
        shingles = _shingles(passage.text)
        twin = next((i for i, (_, other) in enumerate(kept) if _overlap(shingles, other) >= _SAME_TEXT), None)
        if twin is None:
            if len(kept) >= enough:
                break
            kept.append((passage, shingles))
        else:
            first, others = kept[twin]
            kept[twin] = replace(first, repeats=(*first.repeats, passage.id)), others
    return [passage for passage, _ in kept]


def shared_out(passages: list[Passage], limit: int, exact: Collection[str]) -> list[Passage]:
    """The first `limit` of the passages, best first, after the shares of documents and of experience.

    Those beyond a share come last; `exact` are the ids of passages with the larger share.
    """
    allowed, allowed_exact = min(_PER_DOCUMENT, _half(limit)), limit - limit // 4
    taken: dict[str, int] = {}
    first: list[Passage] = []
    later: list[Passage] = []
    for passage in passages:
        count = taken.get(passage.document_id, 0)
        taken[passage.document_id] = count + 1
        most = allowed_exact if passage.id in exact else allowed
        (first if count < most else later).append(passage)
    return _bounded_experience(first + later, limit)


def _bounded_experience(passages: list[Passage], limit: int) -> list[Passage]:
    """The first `limit`, experience among them up to its share unless literature runs out."""
    literature = sum(passage.kind == "literature" for passage in passages)
    room = max(_half(limit), limit - literature)
    shown: list[Passage] = []
    for passage in passages:
        if len(shown) == limit:
            break
        if passage.kind == "literature":
            shown.append(passage)
        elif room > 0:
            room -= 1
            shown.append(passage)
    return shown


def _half(limit: int) -> int:
    return max(1, -(-limit // 2))


def _shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))}


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))
