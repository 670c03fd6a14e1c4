"""The knowledge base as a whole: opening, citations, packing, errors as sentences."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase, count_tokens, database, pack
from kernel_scientist.knowledge.database import connect
from kernel_scientist.knowledge.embedding import offline
from kernel_scientist.sandbox.errors import (
    InternalError,
    KernelScientistError,
    UnusableEnvironment,
    UsageError,
)

Write = Callable[[str, str | bytes], Path]
ROOT = Path(__file__).parents[2]
NOTE = """+++
title = "Banks"
sources = [
  {id = "s1", title = "Guide", url = "https://example.org/guide", looked_up = "2026-12-01"},
  {id = "s2", title = "Paper", url = "https://example.org/paper", looked_up = "2026-11-30"},
]
+++

## Padding

Pad each row by one word [s1][s2].

## Own words

Nothing cited about swizzles.
"""


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / '.links')!r}); import kernel_scientist.knowledge; "
        "heavy = {'chromadb', 'onnxruntime', 'tiktoken', 'numpy', 'tokenizers', 'pypdfium2', 'lxml'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_passage_carries_its_citation(base: KnowledgeBase, write: Write) -> None:
    path = write("banks.md", NOTE)
    base.add(path)

    cited = base.search("pad each row")[0]
    assert cited.id == "banks#1"
    assert cited.citation.section == "Padding" and cited.citation.title == "Banks"
    assert cited.citation.source == "https://example.org/guide https://example.org/paper"
    assert cited.citation.looked_up == "2026-11-30"
    assert [source.id for source in cited.citation.sources] == ["s1", "s2"]
    assert str(cited.citation).startswith("Banks > Padding; https://example.org/guide")

    own = base.passage("banks#2")
    assert own.citation.source == str(path) and own.citation.looked_up is None
    assert own.text == "Nothing cited about swizzles."


@pytest.mark.parametrize(
    "passage_id", ["banks#99", "nothing#1", "banks", "", "banks#x", "#1", "banks#9999999999999"]
)
def test_an_unknown_passage_is_a_usage_error(base: KnowledgeBase, write: Write, passage_id: str) -> None:
    base.add(write("banks.md", NOTE))

    with pytest.raises(UsageError, match="no passage"):
        base.passage(passage_id)


@pytest.mark.parametrize("query", ["", "  ", "???", '"', "NEAR(", "* OR -", "a" * 10_000, "\0", "漢字"])
def test_any_text_is_a_query(base: KnowledgeBase, write: Write, query: str) -> None:
    assert base.search(query) == []
    base.add(write("banks.md", NOTE))

    assert len(base.search(query, limit=1)) == bool(query.strip())


def test_the_kind_of_a_document_can_be_asked_for(base: KnowledgeBase, write: Write) -> None:
    base.add(
        write("a.md", "padding helps\n"),
        write("b.md", '+++\nkind = "experience"\n+++\n\npadding gave 12 %\n'),
    )

    assert [p.id for p in base.search("padding", kind="experience")] == ["b#1"]
    assert [p.id for p in base.search("padding", kind="literature")] == ["a#1"]
    assert len(base.search("padding")) == 2


def test_results_are_packed_to_a_token_budget(base: KnowledgeBase, write: Write) -> None:
    for i in range(6):
        base.add(write(f"d{i}.md", f"# Doc {i}\n\n" + f"banks and more banks, number {i}. " * (5 + i)))
    everything = base.search("banks", limit=6)

    packed = base.search("banks", limit=6, max_tokens=250)

    assert 0 < len(packed) < len(everything) == 6
    assert [p.id for p in packed] == [p.id for p in everything if p in packed]
    assert sum(count_tokens(p.text) + count_tokens(f"[{p.id}] {p.citation}\n") for p in packed) <= 250
    first = count_tokens(everything[0].text) + count_tokens(
        f"[{everything[0].id}] {everything[0].citation}\n"
    )
    cut = pack(everything[:1], first - 10)
    assert len(cut) == 1 and cut[0].text.endswith("[…]") and cut[0].tokens < everything[0].tokens
    assert pack(everything, 0) == [] == pack([], 100)


def test_another_embedder_gets_its_own_vectors(base: KnowledgeBase, write: Write) -> None:
    base.add(write("banks.md", NOTE))

    class Other:
        name, dimensions = "other", 3

        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))

    with pytest.raises(UsageError, match=r"is embedded by 'fake-hash-64', and 'other' was chosen"):
        KnowledgeBase.open(base.path, embedder=Other(), library=False)
    with KnowledgeBase.open(base.path, embedder=Other(), library=False, reembed=True) as other:
        assert other.search("zebra")[0].matched == "vector"
        assert (other.status().indexed, other.status().embedder) == (2, "other")
    assert base.search("pad each row")[0].id == "banks#1"


def test_reopening_keeps_everything(base: KnowledgeBase, write: Write) -> None:
    base.add(write("banks.md", NOTE), tags=["x"])
    before = base.documents()
    base.close()

    with KnowledgeBase.open(base.path, embedder=FakeEmbedder(), library=False) as again:
        assert again.documents() == before
        assert again.search("pad each row")[0].id == "banks#1"


def test_a_closed_base_refuses(base: KnowledgeBase) -> None:
    base.close()
    base.close()

    with pytest.raises(InternalError, match="closed"):
        base.search("x")


@pytest.mark.parametrize("tag", ["", "  ", "a\x1b[2Jb", "a\nb", "\u202e", "x" * 200])
def test_a_tag_that_cannot_be_read_or_typed_is_refused(base: KnowledgeBase, write: Write, tag: str) -> None:
    with pytest.raises(UsageError, match="tag"):
        base.add(write("a.md", "text\n"), tags=[tag])
    assert base.documents() == []


def test_an_empty_source_is_not_the_current_folder(base: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="empty"):
        base.add("")


def test_a_folder_of_the_program_s_own_that_cannot_be_made_is_the_machine_s_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "file" / "home"))

    with pytest.raises(UnusableEnvironment, match="set KERNEL_SCIENTIST_HOME"):
        KnowledgeBase.open(embedder=FakeEmbedder())


def test_a_library_that_does_not_fit_on_the_disk_leaves_no_half_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 60}")
        return connection

    monkeypatch.setattr(database, "connect", small)
    with pytest.raises(UnusableEnvironment, match=r"No space is left .* try again\.$"):
        KnowledgeBase.open(tmp_path / "small", embedder=FakeEmbedder())
    with KnowledgeBase.open(tmp_path / "small", embedder=FakeEmbedder(), library=False) as base:
        assert base.documents() == []


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="open the knowledge base"):
        KnowledgeBase.open(tmp_path / "file" / "knowledge", embedder=FakeEmbedder())


def test_a_folder_that_cannot_be_written_is_a_usage_error() -> None:
    # /proc takes no new files from anyone, root included.
    with pytest.raises(KernelScientistError) as caught:
        KnowledgeBase.open(Path("/proc/self"), embedder=FakeEmbedder())

    assert "/proc/self" in str(caught.value) and isinstance(caught.value, UsageError)


def test_a_file_that_is_no_database_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "knowledge.sqlite3").write_text("this is not a database, but long enough to look at" * 20)

    with pytest.raises(UsageError, match="damaged"):
        KnowledgeBase.open(tmp_path, embedder=FakeEmbedder())


def test_a_base_of_a_newer_version_is_a_usage_error(base: KnowledgeBase) -> None:
    base.close()
    connection = sqlite3.connect(base.path / "knowledge.sqlite3")
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(UsageError, match="version 99"):
        KnowledgeBase.open(base.path, embedder=FakeEmbedder())


def test_a_base_of_the_first_version_is_brought_up_to_date(base: KnowledgeBase, write: Write) -> None:
    path = write("a.md", "one\n")
    base.add(path)
    before = base.documents()
    base.close()
    connection = sqlite3.connect(base.path / "knowledge.sqlite3")
    for column in ("authors", "year", "origin"):
        connection.execute(f"ALTER TABLE documents DROP COLUMN {column}")
    connection.execute("DROP TABLE failures")
    connection.execute("PRAGMA user_version = 1")
    connection.close()

    with KnowledgeBase.open(base.path, embedder=FakeEmbedder(), library=False) as again:
        assert again.documents() == before
        assert again.add(path, write("b.md", "two\n"), "/nowhere").count("added") == 1
        assert [failure.source for failure in again.failures()] == ["/nowhere"]


def test_without_space_the_item_fails_and_nothing_is_half_written(base: KnowledgeBase, write: Write) -> None:
    base.add(write("small.md", "small\n"))
    # The nearest thing to a full disk that needs no disk: SQLite reports both in the same way.
    connection = base._store._database.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    item = base.add(write("large.md", "".join(f"## H{i}\n\n{'text ' * 200}\n\n" for i in range(50)))).items[0]

    assert item.status == "failed" and "No space is left" in item.reason
    assert [d.id for d in base.documents()] == ["small"]
    connection.execute("PRAGMA max_page_count = 1000000")
    assert base.add(write("large.md", "large after all\n")).items[0].status == "added"


def test_a_missing_embedding_model_says_what_to_install(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "_MODEL_PACKAGE", "no_such_model_package")

    with KnowledgeBase.open(tmp_path / "k", library=False) as base:
        item = base.add(write("a.md", "text\n")).items[0]
        assert item.status == "failed" and "pip install no-such-model-package" in item.reason
        with pytest.raises(UnusableEnvironment, match="pip install"):
            base.require_embedder()
