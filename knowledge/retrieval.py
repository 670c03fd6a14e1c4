"""Hybrid retrieval: BM25 over words, exact identifiers, and vectors, joined by weighted scores.

What counts how much depends on the kind of query (see `fusion`): passages that hold an identifier of the
query lead, abbreviations and questions in plain words are both sides' alike.
The query's vector then moves a little towards the passages that lead, and the vectors are asked once more:
those passages use the field's words, which the question may not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from .filters import Filters
from .fusion import WEIGHTS, Weights, above_floor, fused, of_best, towards
from .index import Index
from .query import Query, analyse
from .records import DocumentKind, Match, Passage, Reason
from .selection import distinct, shared_out
from .store import Store, StoredChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Retriever"]

_CANDIDATES = 200
# Of how many leading passages the query's vector moves towards the mean.
_LEADING = 5
# How many of a name's passages are looked at; names in more of them tell little.
_HOLDERS = 400
# How many of the best are looked at to choose what is shown, at least and for each place.
_SHOWN, _SHOWN_A_PLACE = 64, 6
# In a base of more chunks than this, words in more than that share of them are passed over for rarer ones:
# scoring a word costs as much as there are chunks that hold it, and such words tell little.
_LARGE = 20_000
_COMMON_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class _Lexical:
    """What the lexical side found: the share of the query's identifiers, and scores from 0 to 1."""

    held: dict[int, float]
    naming: dict[int, float]
    words: dict[int, float]
    others: dict[int, float]

    def parts(self, weights: Weights) -> list[tuple[float, dict[int, float]]]:
        return [
            (weights.identifiers, self.held),
            (weights.naming, self.naming),
            (weights.words, self.words),
            # When no document has the query's own words, those of the glossary stand for them.
            (weights.plain if self.words else weights.words, self.others),
        ]


@final
class Retriever:
    """Searches a store and its vector index; `embed` turns one text into a unit vector."""

    def __init__(
        self, store: Store, index: Index, embedder: str, embed: Callable[[str], NDArray[np.float32]]
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._embed = embed

    def search(self, text: str, limit: int, filters: Filters, *, meaning: bool = True) -> list[Passage]:
        """The passages for `text`, best first, near-duplicates merged, shares bounded (see `selection`).

        Without `meaning` only by words."""
        documents = self._admitted(filters)
        chunks = self._store.counts(self._embedder)[1]
        if not text.strip() or limit < 1 or not chunks or documents == set():
            return []
        query = analyse(text, self._store.occurrences, chunks)
        depth = max(_CANDIDATES, 4 * limit)
        if chunks > _LARGE:
            most = int(chunks * _COMMON_SHARE)
            query = replace(
                query, words=self._rare(query.words, most), other_words=self._rare(query.other_words, most)
            )
        lexical = self._lexical(query, depth, documents)
        weights = WEIGHTS[query.kind]
        scores, near = fused(lexical.parts(weights)), dict[int, float]()
        if meaning:
            scores, near = self._with_vectors(query, lexical.parts(weights), weights, depth, documents)
        looked_at = max(_SHOWN, _SHOWN_A_PLACE * limit)
        ranked = sorted(scores, key=lambda number: (-scores[number], number))[:looked_at]
        stored = self._store.chunks(ranked)
        found: dict[Reason, set[int]] = {
            "identifier": set(lexical.held),
            "words": {*lexical.words, *lexical.others},
            "meaning": set(near),
        }
        passages = [
            _passage(stored[number], scores[number], _reasons(number, found))
            for number in ranked
            if number in stored
        ]
        exact = {stored[number].id for number in lexical.held if number in stored}
        if filters.kind is None and _lacks_literature(passages, limit):
            only = replace(filters, kind="literature")
            passages += self.search(text, limit, only, meaning=meaning)
        return shared_out(_best_of_each_kind(passages, limit), limit, exact)

    def _lexical(self, query: Query, depth: int, documents: set[str] | None) -> _Lexical:
        total = sum(name.weight for name in query.names)
        held: dict[int, float] = {}
        naming: dict[int, float] = {}
        for name in query.names:
            holders = self._store.match("identifiers", name.expression, _HOLDERS, documents)
            for number, share in of_best(holders).items():
                held[number] = held.get(number, 0.0) + name.weight / total
                naming[number] = naming.get(number, 0.0) + share * name.weight / total
        return _Lexical(
            held,
            naming,
            of_best(self._words(query.words, depth, documents)),
            of_best(self._words(query.other_words, depth, documents)),
        )

    def _rare(self, expression: str, most: int) -> str:
        """The words of an expression that fewer chunks than `most` hold; all when there are none."""
        words = expression.split(" OR ") if expression else []
        rare = [word for word in words if 0 < self._store.holders(word, most) < most]
        return " OR ".join(rare) if rare else expression

    def _words(self, expression: str, depth: int, documents: set[str] | None) -> list[tuple[int, float]]:
        return self._store.match("words", expression, depth, documents) if expression else []

    def _with_vectors(
        self,
        query: Query,
        lexical: list[tuple[float, dict[int, float]]],
        weights: Weights,
        depth: int,
        documents: set[str] | None,
    ) -> tuple[dict[int, float], dict[int, float]]:
        """The fused scores of both sides, and what is near by vectors alone."""
        vector = self._embed(query.vector_text)
        candidates = {number for _, scores in lexical for number in scores}
        rows: dict[int, NDArray[np.float32]] = {}
        near = self._near(vector, candidates, depth, documents, rows)
        scores = fused([*lexical, (weights.vectors, near)])
        if not weights.feedback or not rows:
            return scores, near
        import numpy as np

        leading = sorted(rows.keys() & scores.keys(), key=lambda n: (-scores[n], n))[:_LEADING]
        matrix = np.stack([rows[number] for number in leading])
        moved = towards(vector, matrix, [scores[number] for number in leading], weights.feedback)
        near = self._near(moved, candidates, depth, documents, rows)
        return fused([*lexical, (weights.vectors, near)]), near

    def _near(
        self,
        vector: NDArray[np.float32],
        also: set[int],
        depth: int,
        documents: set[str] | None,
        rows: dict[int, NDArray[np.float32]],
    ) -> dict[int, float]:
        """Scores from 0 to 1 of the nearest chunks, and of `also` that are no farther.

        `rows` are vectors that were read before; those that are read now are added.
        """
        nearest = self._index.search(vector, depth, documents)
        wanted = {*nearest, *also}
        numbers, matrix = self._store.vectors.of_chunks(self._embedder, sorted(wanted - rows.keys()))
        rows.update(zip(numbers, matrix, strict=True))
        cosines = {number: float(rows[number] @ vector) for number in sorted(wanted & rows.keys())}
        floor = min((cosines[number] for number in nearest if number in cosines), default=1.0)
        return above_floor(cosines, floor)

    def _admitted(self, filters: Filters) -> set[str] | None:
        """The documents that the filters let through; ``None`` for every document."""
        if not filters:
            return None
        return {document.id for document in self._store.documents() if filters.admit(document)}


def _lacks_literature(passages: list[Passage], limit: int) -> bool:
    """Whether so much experience was found that literature may be behind it."""
    literature = sum(passage.kind == "literature" for passage in passages)
    return literature < limit and len(passages) - literature > limit


def _best_of_each_kind(passages: list[Passage], limit: int) -> list[Passage]:
    """Enough passages of either kind to choose from, each once, best first, near-duplicates merged."""
    once: dict[str, Passage] = {}
    for passage in passages:
        once.setdefault(passage.id, passage)
    ranked = sorted(once.values(), key=lambda passage: -passage.score)
    kinds: tuple[DocumentKind, ...] = ("literature", "experience")
    kept = [
        passage
        for kind in kinds
        for passage in distinct((one for one in ranked if one.kind == kind), 3 * limit)
    ]
    return sorted(kept, key=lambda passage: -passage.score)


def _passage(chunk: StoredChunk, score: float, reasons: tuple[Reason, ...]) -> Passage:
    return Passage(
        id=chunk.id,
        document_id=chunk.document_id,
        text=chunk.text,
        citation=chunk.citation,
        score=round(min(1.0, max(score, 0.0001)), 4),
        matched=_matched(reasons),
        kind=chunk.kind,
        tokens=chunk.tokens,
        reasons=reasons,
    )


def _reasons(number: int, found: dict[Reason, set[int]]) -> tuple[Reason, ...]:
    return tuple(reason for reason, numbers in found.items() if number in numbers)


def _matched(reasons: tuple[Reason, ...]) -> Match:
    if "meaning" not in reasons:
        return "lexical"
    return "vector" if reasons == ("meaning",) else "both"
