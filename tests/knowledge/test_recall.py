"""The benchmark's questions about the bundled notes: how many are answered, and that they are fair ones."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from kernel_scientist.knowledge import KnowledgeBase
from kernel_scientist.knowledge.query import analyse

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from retrieval.measures import difference, measure
from retrieval.questions import HALVES, KINDS, Question, questions
from retrieval.rankings import SYSTEMS, Named, first_right

_EVERY = 4
# Of the passages that a plain question is compared with, which share a word that is called rare.
_RARE_SHARE = 0.005


def _bundled() -> list[Question]:
    return [one for one in questions() if one.bundled]


def test_there_are_enough_questions_of_each_kind_in_each_half() -> None:
    asked = questions()
    counts = Counter((one.kind, one.half) for one in asked)

    assert len(asked) >= 200 and len({one.text for one in asked}) == len(asked)
    assert all(sum(counts[kind, half] for half in HALVES) >= 60 for kind in KINDS)
    assert all(counts[kind, half] >= 30 for kind in KINDS for half in HALVES)


def test_every_target_in_the_notes_is_there(library: KnowledgeBase) -> None:
    sections = {
        (f"library/{one.id}", passage.citation.section)
        for one in library.documents()
        for passage in library.passages(one.id)
    }

    missing = [
        target
        for one in questions()
        for target in one.right
        if target.bundled and (target.document, target.section) not in sections
    ]
    assert missing == []


def test_plain_questions_share_no_rare_word_with_their_answer(library: KnowledgeBase) -> None:
    store, chunks = library._store, library.status().chunks
    named = Named(library)
    shared: list[tuple[str, str]] = []
    for question in (one for one in _bundled() if one.kind == "plain"):
        for term in analyse(question.text, lambda _: 0, 1).words.split(" OR "):
            holders = [number for number, _ in store.match("words", term, chunks, None)]
            if 0 < len(holders) < _RARE_SHARE * chunks:
                cited = store.chunks(holders).values()
                targets = {(named.names[c.document_id], c.citation.section) for c in cited}
                if targets & {(one.document, one.section) for one in question.right}:
                    shared.append((question.text, term))
    assert shared == []


@pytest.mark.parametrize(("kind", "floor"), [("plain", 0.5), ("abbreviation", 0.9), ("identifier", 0.95)])
def test_right_passages_are_among_the_first_five(library: KnowledgeBase, kind: str, floor: float) -> None:
    named = Named(library)
    sample = [one for one in _bundled() if one.kind == kind][::_EVERY]

    ranks = [first_right(one, SYSTEMS["hybrid"](named, one.text)) for one in sample]

    assert measure(ranks)[1].mean >= floor


def test_measures_are_those_of_the_first_right_passage() -> None:
    at_1, at_5, mrr = measure([1, 2, None, 6])

    assert (at_1.mean, at_5.mean) == (0.25, 0.5)
    assert mrr.mean == pytest.approx((1 + 1 / 2 + 0 + 1 / 6) / 4)
    assert mrr.low <= mrr.mean <= mrr.high
    assert difference([1, 1], [2, 2]).low == 0.5
