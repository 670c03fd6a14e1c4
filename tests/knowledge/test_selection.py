"""How scores are joined, and which of the ranked passages are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.knowledge import Citation, DocumentKind, KnowledgeBase, Passage, pack
from kernel_scientist.knowledge.fusion import WEIGHTS, above_floor, fused, of_best, towards
from kernel_scientist.knowledge.glossary import plain_terms
from kernel_scientist.knowledge.query import analyse
from kernel_scientist.knowledge.selection import shared_out

Write = Callable[[str, str | bytes], Path]


def _passages(*documents: str, kind: DocumentKind = "literature") -> list[Passage]:
    return [
        Passage(f"{one}#{i}", one, f"text {i}", Citation(one, "", None, one), 0.5, "both", kind)
        for i, one in enumerate(documents)
    ]


def test_scores_are_shares_of_the_best() -> None:
    assert of_best([(1, 4.0), (2, 1.0)]) == {1: 1.0, 2: 0.25}
    assert of_best([]) == {}
    assert above_floor({1: 0.9, 2: 0.5, 3: 0.1}, 0.5) == {1: 1.0, 2: 0.0}
    assert above_floor({1: 0.4}, 0.4) == {1: 1.0}


def test_the_sum_leaves_parts_out_that_found_nothing() -> None:
    total = fused([(1.0, {1: 1.0, 2: 0.5}), (3.0, {}), (1.0, {2: 1.0})])

    assert total == {1: 0.5, 2: 0.75}


def test_a_vector_moves_towards_what_leads_and_keeps_its_length() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)

    moved = towards(np.array([1.0, 0.0], np.float32), rows, [1.0, 0.0], share=1.0)

    np.testing.assert_allclose(moved, [2**-0.5, 2**-0.5], rtol=1e-5)


def test_an_identifier_counts_more_than_all_else_together() -> None:
    weights = WEIGHTS["identifier"]

    assert weights.identifiers > weights.words + weights.vectors + weights.naming + weights.plain


def test_one_document_gets_at_most_three_places_while_there_are_others() -> None:
    passages = _passages(*["long"] * 9, *[f"other{i}" for i in range(6)])

    shown = [one.document_id for one in shared_out(passages, 8, exact=())]

    assert shown[:3] == ["long"] * 3
    assert shown.count("long") == 3


def test_a_document_that_holds_the_identifier_leaves_a_quarter_of_the_places() -> None:
    passages = _passages(*["manual"] * 20, *[f"other{i}" for i in range(6)])

    shown = shared_out(passages, 8, exact={one.id for one in passages if one.document_id == "manual"})

    assert [one.document_id for one in shown].count("manual") == 6


@pytest.mark.parametrize(("papers", "experience"), [(20, 4), (3, 5), (0, 8)])
def test_experience_has_half_of_the_places_unless_literature_runs_out(papers: int, experience: int) -> None:
    runs = _passages(*(f"run{i}" for i in range(20)), kind="experience")
    literature = _passages(*(f"paper{i}" for i in range(papers)))

    shown = shared_out(runs + literature, 8, exact=())

    assert len(shown) == 8
    assert sum(one.kind == "experience" for one in shown) == experience


def test_literature_is_found_beside_a_hundred_findings_of_runs(base: KnowledgeBase, write: Write) -> None:
    for i in range(30):
        base.add(
            write(
                f"run{i}.md",
                f'+++\ntitle = "Run {i}"\nkind = "experience"\n+++\n\n'
                f"Padding the tile against bank conflicts {i * 7}: faster by {i} per cent {i * 13}.\n",
            )
        )
    base.add(*(write(f"paper{i}.md", f"Bank conflicts, reason {i * 31}, of a tile.\n") for i in range(4)))

    found = base.search("padding the tile against bank conflicts", limit=8)

    assert sum(one.kind == "literature" for one in found) == 4
    packed = pack(found, 120)
    assert packed and packed == [one for one in found if one in packed]


def test_plain_words_are_known_by_the_terms_of_the_field() -> None:
    assert "barrier" in plain_terms("threads must wait for each other")
    assert plain_terms("a barrier") == []
    query = analyse("threads must wait for each other", lambda _: 0, 100)
    assert query.kind == "plain" and '"barrier"' in query.other_words and '"barrier"' not in query.words


@pytest.mark.parametrize(
    ("said", "found_by"), [("LDS", "local data share"), ("local data share", "LDS"), ("wavefront", "warp")]
)
def test_the_glossary_finds_documents_that_use_the_other_word(
    base: KnowledgeBase, write: Write, said: str, found_by: str
) -> None:
    base.add(write("this.md", f"Nothing but {found_by} here.\n"))
    base.add(*(write(f"other{i}.md", f"Onions, {i * 17} of them.\n") for i in range(12)))

    best = base.search(f"{said}?", limit=1)[0]

    assert best.document_id == "this" and "words" in best.reasons


def test_the_passage_that_holds_the_identifier_leads_whatever_else_is_said(
    base: KnowledgeBase, write: Write
) -> None:
    base.add(write("right.md", "Something about ds_read_b96.\n"))
    base.add(
        *(
            write(f"near{i}.md", f"Wide loads from shared memory read banks, {i * 19}: ds_read_b128.\n")
            for i in range(5)
        )
    )

    found = base.search("how do wide loads from shared memory read the banks with ds_read_b96", limit=3)

    assert found[0].document_id == "right" and found[0].reasons[0] == "identifier"
