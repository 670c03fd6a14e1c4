"""Rankings of the two sides alone and of the search that people use, and where a right passage stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_scientist.knowledge import KnowledgeBase, Passage
from kernel_scientist.knowledge.query import analyse

from .measures import DEPTH
from .questions import Question, Target

__all__ = ["SYSTEMS", "Named", "Ranking", "first_right"]

Ranking = Callable[["Named", str], list[list[Target]]]
_LIBRARY = "library:"


class Named:
    """A knowledge base, and what `questions.toml` calls each of its documents."""

    def __init__(self, base: KnowledgeBase) -> None:
        self.base = base
        self.names = {one.id: _name(one.source) for one in base.documents()}


def _lexical(named: Named, text: str) -> list[list[Target]]:
    """BM25 over stemmed words with identifiers split, headings double: no glossary, no whole identifiers."""
    store = named.base._store
    query = analyse(text, store.occurrences, chunks=1)
    found = store.match("words", query.words, DEPTH, None) if query.words else []
    return _places(named, [number for number, _ in found])


def _dense(named: Named, text: str) -> list[list[Target]]:
    """The vectors nearest to the question's."""
    return _places(named, named.base._index.search(named.base._embedder.embed_query(text), DEPTH))


def _hybrid(named: Named, text: str) -> list[list[Target]]:
    """`KnowledgeBase.search` as it is; a passage stands for those it was merged with."""
    return [
        [_target(named, one) for one in (passage, *map(named.base.passage, passage.repeats))]
        for passage in named.base.search(text, limit=DEPTH)
    ]


SYSTEMS: dict[str, Ranking] = {"lexical": _lexical, "dense": _dense, "hybrid": _hybrid}


def first_right(question: Question, places: Sequence[Sequence[Target]]) -> int | None:
    """The rank, from 1, of the first place that holds a right passage."""
    for rank, targets in enumerate(places, 1):
        if any(target in question.right for target in targets):
            return rank
    return None


def _places(named: Named, numbers: Sequence[int]) -> list[list[Target]]:
    chunks = named.base._store.chunks(numbers)
    return [
        [Target(named.names[chunks[number].document_id], chunks[number].citation.section)]
        for number in numbers
        if number in chunks
    ]


def _target(named: Named, passage: Passage) -> Target:
    return Target(named.names[passage.document_id], passage.citation.section)


def _name(source: str) -> str:
    if source.startswith(_LIBRARY):
        return f"library/{source.removeprefix(_LIBRARY).removesuffix('.md')}"
    return "/".join(source.rsplit("/documents/", 1)[-1].split("/")[1:])
