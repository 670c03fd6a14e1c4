"""Manifests: what they say of documents goes before what the documents say, and mistakes are named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import KnowledgeBase
from kernel_scientist.sandbox.errors import UsageError

Write = Callable[[str, str | bytes], Path]

TOML = """\
[[document]]
path = "a.md"
title = "Banks of the LDS"
authors = ["A. One", "B. Two"]
year = 2024
source = "https://example.org/banks"
tags = ["lds"]

[[document]]
path = "b.md"
"""
JSON = json.dumps(
    [
        {
            "path": "a.md",
            "title": "Banks of the LDS",
            "authors": ["A. One", "B. Two"],
            "year": 2024,
            "source": "https://example.org/banks",
            "tags": ["lds"],
        },
        {"path": "b.md"},
    ]
)
CSV = (
    "path,title,authors,year,source,tags\n"
    "a.md,Banks of the LDS,A. One; B. Two,2024,https://example.org/banks,lds\n"
    "b.md,,,,,\n"
)


@pytest.mark.parametrize(("name", "text"), [("m.toml", TOML), ("m.json", JSON), ("m.csv", CSV)])
def test_a_manifest_says_what_its_documents_are(
    base: KnowledgeBase, write: Write, name: str, text: str
) -> None:
    write("a.md", "# Another title\n\nText on banks.\n")
    write("b.md", "# Second\n\nText.\n")

    report = base.add(manifest=write(name, text), tags=["all"])

    assert [item.status for item in report.items] == ["added", "added"]
    first, second = base.documents()
    assert (first.title, first.authors, first.year) == ("Banks of the LDS", ("A. One", "B. Two"), 2024)
    assert (first.origin, first.tags) == ("https://example.org/banks", ("lds", "all"))
    assert (second.title, second.authors, second.year, second.tags) == ("Second", (), None, ("all",))
    cited = base.search("banks", limit=1)[0].citation
    assert str(cited) == "Banks of the LDS (A. One and B. Two, 2024); https://example.org/banks"


def test_better_knowledge_of_the_same_file_replaces_it_and_none_keeps_it(
    base: KnowledgeBase, write: Write
) -> None:
    path = write("a.md", "text\n")
    write("b.md", "more\n")
    base.add(path)
    manifest = write("m.toml", TOML)

    assert [item.status for item in base.add(manifest=manifest).items] == ["replaced", "added"]
    assert base.add(path, manifest=manifest).count("unchanged") == 2
    assert base.add(path).items[0].status == "unchanged"
    assert base.documents()[0].year == 2024


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("m.toml", "[[document]\n", "is not TOML"),
        ("m.json", "[", "is not JSON"),
        ("m.json", "7", "no list of documents"),
        ("m.json", '["a.md"]', "entry 1 of"),
        ("m.yaml", "a: b", "ends in '.yaml'"),
        ("m.toml", "x = 1\n", "unknown key 'x'"),
        ("m.toml", "", "is empty"),
        ("m.json", "[]", "names no documents"),
        ("m.toml", '[[document]]\ntitle = "x"\n', "entry 1 of"),
        ("m.toml", '[[document]]\npath = "a"\nurl = "b"\n', "either a path or a url"),
        ("m.toml", '[[document]]\npath = "a"\nauthor = "b"\n', "unknown key 'author'"),
        ("m.toml", '[[document]]\npath = "a"\nyear = "soon"\n', "is not a number such as 2025"),
        ("m.toml", '[[document]]\npath = "a"\ntags = [1]\n', "not a list of texts"),
        ("m.csv", "path,titel\na.md,x\n", "unknown key 'titel'"),
        ("m.csv", "path\na.md,x\n", "unknown key"),
    ],
)
def test_a_wrong_manifest_is_refused_before_anything_is_added(
    base: KnowledgeBase, write: Write, name: str, text: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        base.add(write("good.md", "text\n"), manifest=write(name, text))
    assert base.documents() == []


def test_a_manifest_that_is_not_there_is_a_usage_error(base: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        base.add(manifest=tmp_path / "none.toml")
