"""Looking into a knowledge base and taking documents out of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.knowledge.languages import Language
from kernel_scientist.sandbox.errors import UsageError

Write = Callable[[str, str | bytes], Path]
CODE = {
    "tile.hip": "__global__ void tile(float *a) { a[0] = 1; }\n",
    "tile.cu": "__global__ void tile(float *b) { b[0] = 1; }\n",
    "ported.cu": "#include <hip/hip_runtime.h>\n__global__ void tile(float *c) { c[0] = 1; }\n",
    "tile.cl": "__kernel void tile(__global float *d) { d[0] = 1; }\n",
    "triton_tile.py": "@triton.jit\ndef tile(e):\n    return e\n",
    "plain_tile.py": "def tile(f):\n    return f\n",
    "tile.h": "struct tile { float g; };\n",
}


def note(name: str, architectures: str = "[]", tags: str = "[]", kind: str = "literature") -> str:
    head = f'title = "{name}"\nkind = "{kind}"\narchitectures = {architectures}\ntags = {tags}\n'
    return f"+++\n{head}+++\n\n## Tiles\n\nA tile of {name}.\n\n## More\n\nMore of {name}.\n"


def test_a_document_is_found_by_its_id_its_source_and_a_unique_beginning(
    base: KnowledgeBase, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("lds-banks.md", note("a"))
    base.add(path, write("lds-rows.md", note("b")))

    monkeypatch.chdir(path.parent)
    for name in ("lds-banks", "lds-b", str(path), "lds-banks.md", "../papers/lds-banks.md"):
        assert base.document(name).id == "lds-banks", name
    with pytest.raises(UsageError, match=r"begins the ids of 2 documents \(lds-banks, lds-rows\)"):
        base.document("lds")
    with pytest.raises(UsageError, match="did you mean 'lds-banks'"):
        base.document("ldsbank")


@pytest.mark.parametrize("name", ["", " ", "nothing", "\0", "~nobody-here/x", "\x1b[2J", "a" * 5000])
def test_a_name_of_no_document_is_a_usage_error(base: KnowledgeBase, write: Write, name: str) -> None:
    base.add(write("lds.md", note("a")))

    for act in (base.document, base.passages, base.remove):
        with pytest.raises(UsageError, match="There is no document") as caught:
            act(name)
        assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 600


def test_passages_are_all_of_a_document_in_reading_order(base: KnowledgeBase, write: Write) -> None:
    base.add(write("a.md", note("a")), write("b.md", note("b")))

    passages = base.passages("a")

    assert [p.id for p in passages] == ["a#1", "a#2"]
    assert [p.citation.section for p in passages] == ["Tiles", "More"]
    assert passages == [base.passage("a#1"), base.passage("a#2")]


def test_removing_forgets_a_document_and_leaves_its_file(base: KnowledgeBase, write: Write) -> None:
    path = write("a.md", note("zebra"))
    base.add(path, write("b.md", note("horse")))

    removed = base.remove("a")

    assert [one.id for one in removed] == ["a"] and path.is_file()
    assert [one.id for one in base.documents()] == ["b"]
    assert {p.document_id for p in base.search("zebra")} == {"b"}
    assert (base.status().chunks, base.status().indexed, base.status().waiting) == (2, 2, 0)
    assert base.add(path).items[0].status == "added"


def test_removing_several_is_all_or_nothing(base: KnowledgeBase, write: Write) -> None:
    base.add(write("a.md", note("a")), write("b.md", note("b")))

    with pytest.raises(UsageError, match="'c'"):
        base.remove("a", "b", "c")
    assert [one.id for one in base.documents()] == ["a", "b"]
    assert [one.id for one in base.remove("b", "a", "b")] == ["b", "a"]
    assert base.documents() == [] == base.search("a tile")
    assert base.remove() == []


def test_bundled_notes_are_not_removed(library: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="bundled"):
        library.remove("lds-banks")
    assert library.document("lds-banks").bundled


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {"old", "new", "any", "tried"}),
        ({"kind": "experience"}, {"tried"}),
        ({"tags": ["LDS"]}, {"new", "any"}),
        ({"tags": ["lds", "fp8"]}, {"new"}),
        ({"architectures": ["gfx942"]}, {"new", "any", "tried"}),
        ({"architectures": ["GFX90A", "gfx950"]}, {"old", "any", "tried"}),
        ({"architectures": ["gfx942"], "tags": ["lds"], "kind": "literature"}, {"new", "any"}),
        ({"language": "hip"}, set()),
        ({"tags": ["nothing"]}, set()),
    ],
)
def test_filters_of_a_search(
    base: KnowledgeBase, write: Write, filters: dict[str, list[str]], expected: set[str]
) -> None:
    base.add(
        write("old.md", note("old", '["gfx90a"]')),
        write("new.md", note("new", '["gfx942"]', '["lds", "fp8"]')),
        write("any.md", note("any", tags='["lds"]')),
        write("tried.md", note("tried", kind="experience")),
    )

    found = base.search("a tile", limit=20, **filters)  # type: ignore[arg-type]

    assert {p.document_id for p in found} == expected


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("hip", {"tile.hip", "ported.cu"}),
        ("cuda", {"tile.cu"}),
        ("opencl", {"tile.cl"}),
        ("triton", {"triton_tile.py"}),
        ("python", {"plain_tile.py"}),
        ("c++", {"tile.h"}),
        ("mlir", set[str]()),
    ],
)
def test_source_code_is_found_by_its_language(
    base: KnowledgeBase, write: Write, language: Language, names: set[str]
) -> None:
    base.add(*(write(name, text) for name, text in CODE.items()), write("tile.md", "about a tile\n"))

    found = base.search("tile", limit=20, language=language)

    assert {Path(base.document(p.document_id).source).name for p in found} == names
    assert {base.document(p.document_id).language for p in found} <= {language}


def test_a_passage_says_why_it_matched(base: KnowledgeBase, write: Write) -> None:
    base.add(
        write("isa.md", "# Isa\n\nThe wide read is ds_read_b128 here.\n"),
        write("words.md", "# Words\n\nAn entirely different matter of horses.\n"),
    )

    reasons = {p.document_id: p.reasons for p in base.search("ds_read_b128")}

    assert reasons["isa"] == ("identifier", "words", "meaning")
    assert reasons["words"] == ("meaning",)
    assert base.search("horses")[0].reasons == ("words", "meaning")


def test_status_counts_by_kind_and_by_embedding_model(base: KnowledgeBase, write: Write) -> None:
    base.add(write("a.md", note("a")), write("b.md", note("b", kind="experience")))

    status = base.status()

    assert (status.documents, status.experience, status.bundled, status.damage) == (2, 1, 0, "")
    assert status.vectors == {FakeEmbedder.name: 4}
    assert status.size_bytes > (base.path / "knowledge.sqlite3").stat().st_size
