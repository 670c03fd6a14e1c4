"""Files to documents: structure, titles, pages, and why a file is not one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge.loaders import LoadedDocument, LoadError, load, parse

Write = Callable[[str, str | bytes], Path]


def read(path: Path) -> LoadedDocument:
    return load(path)[1]


def test_markdown_sections_carry_the_path_of_their_headings(write: Write) -> None:
    document = read(
        write("a.md", "# Book\n\nIntro.\n\n## Part\n\n### Sub\n\nText.\n\n## Other ##\n\nMore.\n")
    )

    assert document.title == "Book"
    assert [(s.path, s.text) for s in document.sections] == [
        ((), "Intro."),
        (("Part", "Sub"), "Text."),
        (("Other",), "More."),
    ]


def test_a_hash_in_fenced_code_is_no_heading(write: Write) -> None:
    document = read(write("a.md", "# T\n\n```c\n# define X 1\n## Y\n```\n\nafter\n"))

    assert [s.path for s in document.sections] == [()]
    assert "# define X 1" in document.sections[0].text


def test_underlined_headings_count_but_rules_and_tables_do_not(write: Write) -> None:
    document = read(
        write("a.md", "Title\n=====\n\none\n\nPart\n----\n\ntwo\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    )

    assert [s.path for s in document.sections] == [(), ("Part",)]
    assert "| 1 | 2 |" in document.sections[1].text


def test_front_matter_gives_title_tags_and_sources(write: Write) -> None:
    text = (
        '+++\ntitle = "Banks"\ntags = ["lds"]\narchitectures = ["gfx942"]\n'
        'sources = [{id = "s1", title = "Guide", url = "https://example.org/g", looked_up = "2026-12-01"}]\n'
        "+++\n\n## Padding\n\nPad the row [s1].\n"
    )

    document = read(write("a.md", text))

    assert (document.title, document.tags, document.architectures) == ("Banks", ("lds",), ("gfx942",))
    assert document.sources[0].url == "https://example.org/g"
    assert document.sections[0].path == ("Padding",)


@pytest.mark.parametrize(
    ("front_matter", "complaint"),
    [
        ("title = ", "not TOML"),
        ('titel = "x"', "unknown key 'titel'"),
        ("title = 3", "title is not a text"),
        ('tags = "lds"', "tags is not a list"),
        ('kind = "novel"', "neither 'literature' nor 'experience'"),
        ('sources = ["https://example.org"]', "not a table"),
        ('sources = [{id = "s1", title = "G"}]', "sources.url is not a text"),
    ],
)
def test_bad_front_matter_is_refused_with_its_reason(write: Write, front_matter: str, complaint: str) -> None:
    with pytest.raises(LoadError, match=re.escape(complaint)):
        read(write("a.md", f"+++\n{front_matter}\n+++\n\ntext\n"))


def test_yaml_front_matter_gives_the_title_and_is_no_text(write: Write) -> None:
    document = read(write("a.md", "---\ntitle: 'Waves'\nlayout: post\n---\n\nA wave has 64 lanes.\n"))

    assert document.title == "Waves"
    assert [s.text for s in document.sections] == ["A wave has 64 lanes."]


def test_each_function_of_a_source_file_is_a_section_with_its_comment(write: Write) -> None:
    source = (
        "#include <hip/hip_runtime.h>\n\nconstexpr int kTile = 32;\n\n"
        "// Adds two vectors.\n__global__ void __launch_bounds__(256) add(const float* a, float* b) {\n\n"
        "  if (a) {\n    b[0] = a[0];\n  }\n}\n\n"
        "struct Tile {\n  int rows;\n};\n\n"
        "template <int N>\n__device__ float sum(const float* x) {\n  return x[0];\n}\n"
    )

    document = read(write("k.hip", source))

    assert document.title == "k.hip"
    assert [s.path for s in document.sections] == [("add",), ("Tile",), ("sum",)]
    assert "// Adds two vectors." in document.sections[0].text
    # Nothing of the file is lost.
    assert "".join("".join(s.text.split()) for s in document.sections) == "".join(source.split())


def test_python_functions_are_sections(write: Write) -> None:
    document = read(
        write("k.py", "import math\n\n\ndef first(x):\n    return x\n\n\nclass Second:\n    pass\n")
    )

    assert [s.path for s in document.sections] == [("first",), ("Second",)]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b"  \n\n", "empty"),
        ("binary.txt", b"\x7fELF\x02\x01\x00\x00", "binary"),
        ("noise.md", bytes(range(1, 32)) * 40, "binary"),
        ("page.docx", b"text", "not a document type we read ('.docx'); convert it"),
        ("menu.html", b"<nav>Home</nav>", "no text"),
        ("other.ipynb", b'{"a": 1}', "it has no cells"),
        ("broken.ipynb", b'{"cells": [', "not a Jupyter notebook"),
        ("noname", b"text", "not a document type we read (no suffix)"),
        ("only-front.md", b'+++\ntitle = "x"\n+++\n', "no text"),
        ("open.md", b"+++\ntitle = 'x'\n\ntext", "not closed"),
        ("broken.pdf", b"%PDF-1.7\nnothing of use", "not a readable PDF"),
    ],
)
def test_what_is_no_document_is_refused_with_its_reason(
    write: Write, name: str, content: bytes, complaint: str
) -> None:
    with pytest.raises(LoadError, match=re.escape(complaint)):
        read(write(name, content))


def test_numbered_and_underlined_headings_of_plain_text_are_sections_and_lists_are_not() -> None:
    text = (
        "Tuning notes\n\nIntro.\n\nPart\n====\n\n1 First\n\nText.\n\n1.2 Sub\n\nMore.\n\n"
        "1. Buy milk\n2. Buy eggs\n\nOther\n=====\n\nEnd.\n"
    )

    document = parse(text.encode(), "a.txt")

    assert document.title == "Tuning notes"
    assert [s.path for s in document.sections] == [
        (),
        ("Part", "1 First"),
        ("Part", "1 First", "1.2 Sub"),
        ("Other",),
    ]
    assert "1. Buy milk\n2. Buy eggs" in document.sections[2].text


def test_text_that_is_not_utf8_is_still_read(write: Write) -> None:
    assert "Köln" in read(write("a.txt", "Köln".encode("latin-1"))).sections[0].text
    assert "wave" in read(write("b.txt", "wave".encode("utf-16"))).sections[0].text
    assert read(write("c.txt", b"\xef\xbb\xbfbom\r\nend")).sections[0].text == "bom\nend"
