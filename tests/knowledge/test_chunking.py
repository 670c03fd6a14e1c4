"""Chunks follow the document's structure, stay within the limit and lose nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_scientist.knowledge.chunking import chunk, embedded_text, without_marks
from kernel_scientist.knowledge.loaders import LoadedDocument, Section
from kernel_scientist.knowledge.records import Source
from kernel_scientist.knowledge.tokens import count_tokens

GUIDE = Source("s1", "Guide", "https://example.org/guide", "2026-12-01")
PAPER = Source("s2", "Paper", "https://example.org/paper", "2026-11-30")


def document(*sections: Section, sources: tuple[Source, ...] = ()) -> LoadedDocument:
    return LoadedDocument("Book", sections, sources=sources)


def test_a_section_within_the_limit_is_one_chunk_and_sections_are_not_joined() -> None:
    chunks = chunk(document(Section(("A", "B"), "one\n\ntwo", 3), Section(("C",), "three")))

    assert [(c.section, c.text, c.page) for c in chunks] == [("A > B", "one\n\ntwo", 3), ("C", "three", None)]


def test_a_long_section_is_cut_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {i} has a handful of words in it." for i in range(20)]

    chunks = chunk(document(Section((), "\n\n".join(paragraphs))), limit=60)

    assert len(chunks) > 3
    assert "\n\n".join(c.text for c in chunks) == "\n\n".join(paragraphs)


def test_fenced_code_with_blank_lines_stays_whole() -> None:
    code = "```\nint a;\n\nint b;\n\nint c;\n```"
    words = "Words before it, enough of them to need a second chunk for the code. " * 3

    chunks = chunk(document(Section((), f"{words}\n\n{code}")), limit=60)

    assert code in [c.text for c in chunks]


@pytest.mark.parametrize("text", ["word " * 500, "x" * 5000, "A sentence here. " * 200, "a | b\n" * 300])
def test_no_chunk_is_over_the_limit(text: str) -> None:
    chunks = chunk(document(Section((), text)), limit=50)

    assert max(count_tokens(c.text) for c in chunks) <= 50
    assert "".join("".join(c.text.split()) for c in chunks) == "".join(text.split())


def test_each_piece_of_a_long_table_has_its_head() -> None:
    head = "| Instruction | Passes |\n|---|---|"
    rows = [f"| v_op_{n} | {n} |" for n in range(40)]

    chunks = chunk(document(Section((), "\n".join([head, *rows]))), limit=80)

    assert len(chunks) > 3 and all(c.text.startswith(head) and c.tokens <= 80 for c in chunks)
    assert [row for c in chunks for row in c.text.split("\n")[2:]] == rows


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab .\n`~|-é漢\U0001f600"), max_size=400), st.booleans())
def test_no_letter_is_lost_whatever_the_text(text: str, verbatim: bool) -> None:
    chunks = chunk(document(Section((), text, verbatim=verbatim)), limit=20)

    assert "".join("".join(c.text.split()) for c in chunks) == "".join(text.split())


def test_a_chunk_cites_the_sources_whose_marks_it_holds() -> None:
    text = "LDS has 32 banks [s1]. Texts such as x[i] and [s9] are not marks.\n\nPadding helps [s1, s2]."
    sections = [Section(("A",), part) for part in text.split("\n\n")]

    chunks = chunk(document(*sections, sources=(GUIDE, PAPER)))

    assert [c.sources for c in chunks] == [(GUIDE,), (GUIDE, PAPER)]


def test_the_embedding_model_reads_headings_and_no_marks() -> None:
    piece = chunk(
        document(Section(("Banks",), "32 banks [s1][s2], x[s1] too [s9]."), sources=(GUIDE, PAPER))
    )[0]

    assert embedded_text("Book", piece) == "Book > Banks\n32 banks, x too [s9]."
    assert without_marks("as is [s1]", ()) == "as is [s1]"
