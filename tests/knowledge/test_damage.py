"""Damaged databases: noticed, explained in a sentence, repaired as far as can be, and never thrown away."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.knowledge.database import DamagedError
from kernel_scientist.sandbox.errors import KernelScientistError

Write = Callable[[str, str | bytes], Path]
SOURCES = 'sources = [{id = "s1", title = "Guide", url = "https://example.org", looked_up = "2026-12-01"}]'


def open_base(folder: Path) -> KnowledgeBase:
    return KnowledgeBase.open(folder, embedder=FakeEmbedder(), library=False)


def fill(folder: Path, write: Write, count: int = 12) -> Path:
    """A base of documents of three passages each, closed; returns its file."""
    with open_base(folder) as base:
        for i in range(count):
            parts = "".join(
                f"## Part {j}\n\nThe horse{i} number {j} [s1]. {f'word{i}x{j} ' * 25}\n\n" for j in range(3)
            )
            path = write(f"doc{i:02}.md", f'+++\ntitle = "Doc {i}"\n{SOURCES}\n+++\n\n{parts}')
        base.add(path.parent, tags=["t"])
    return folder / "knowledge.sqlite3"


def root_page(file: Path, name: str) -> int:
    with sqlite3.connect(file) as connection:
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    connection.close()
    return int(found[0])


def overwrite(file: Path, page: int) -> None:
    with file.open("r+b") as handle:
        handle.seek((page - 1) * 4096)
        handle.write(b"\xa5" * 4096)


def test_a_whole_base_is_not_repaired(tmp_path: Path, write: Write) -> None:
    assert KnowledgeBase.repair(tmp_path / "nothing") is None
    fill(tmp_path / "k", write, 1)
    assert KnowledgeBase.repair(tmp_path / "k") is None
    assert not list((tmp_path / "k").glob("*damaged*"))


@pytest.mark.parametrize("table", ["words_data", "identifiers_data", "vectors", "documents_by_content"])
def test_damage_to_what_can_be_made_again_loses_nothing(tmp_path: Path, write: Write, table: str) -> None:
    file = fill(tmp_path / "k", write)
    overwrite(file, root_page(file, table))

    saved = KnowledgeBase.repair(tmp_path / "k")

    assert saved is not None and (saved.documents, saved.lost) == (12, ())
    assert Path(saved.damaged).is_file()
    with open_base(tmp_path / "k") as base:
        assert [one.id for one in base.documents()] == [f"doc{i:02}" for i in range(12)]
        found = base.search("word7x2", limit=1)[0]
        assert (found.id, found.citation.sources[0].url) == ("doc07#3", "https://example.org")
        assert base.document("doc07").tags == ("t",)
        assert (base.status().damage, base.status().waiting) == ("", 0)
        assert KnowledgeBase.repair(tmp_path / "k") is None


def test_a_bad_page_of_passages_costs_only_their_documents_and_names_them(
    tmp_path: Path, write: Write
) -> None:
    file = fill(tmp_path / "k", write, 20)
    with sqlite3.connect(file) as connection:
        numbers = [row[0] for row in connection.execute("SELECT number FROM chunks")]
    connection.close()
    assert len(numbers) == 60
    raw = file.read_bytes()
    # The leaf that holds the text of the tenth document's second part.
    at = raw.index(b"Doc 9 > Part 1\nThe horse9 number 1")
    overwrite(file, at // 4096 + 1)

    saved = KnowledgeBase.repair(tmp_path / "k")

    assert saved is not None and saved.documents >= 10
    assert any(source.endswith("doc09.md") for source in saved.lost)
    assert saved.documents + len(saved.lost) == 20
    with open_base(tmp_path / "k") as base:
        assert all(one.chunks == 3 for one in base.documents())
        report = base.add(*saved.lost, tags=["t"])
        assert report.count("added") == len(saved.lost)
        assert base.search("word9x1", limit=1)[0].id == "doc09#2"


@pytest.mark.parametrize("damage", ["no database", "first page", "cut off"])
def test_a_file_past_reading_is_kept_and_an_empty_base_made(
    tmp_path: Path, write: Write, damage: str
) -> None:
    file = fill(tmp_path / "k", write, 3)
    if damage == "no database":
        file.write_bytes(b"something else entirely" * 1000)
    elif damage == "first page":
        overwrite(file, 1)
    else:
        file.write_bytes(file.read_bytes()[:5000])
    before = file.read_bytes()
    with pytest.raises(KernelScientistError, match=r"is damaged .*knowledge rebuild"):
        open_base(tmp_path / "k").close()

    saved = KnowledgeBase.repair(tmp_path / "k")

    assert saved is not None and Path(saved.damaged).read_bytes() == before
    with open_base(tmp_path / "k") as base:
        assert base.documents() == []
        assert base.add(tmp_path / "papers").count("added") == 3


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_is_noticed_or_harmless_and_always_repaired(
    tmp_path: Path, write: Write, seed: int
) -> None:
    file = fill(tmp_path / "k", write, 8)
    generator = random.Random(seed)
    overwrite(file, generator.randint(2, file.stat().st_size // 4096))

    saved = KnowledgeBase.repair(tmp_path / "k")

    with open_base(tmp_path / "k") as base:
        whole = {one.id for one in base.documents() if one.chunks == 3}
        assert len(whole) == len(base.documents())
        if saved is None:
            assert len(whole) == 8
        else:
            assert len(whole) == saved.documents >= 8 - len(saved.lost)
        assert base.status().damage == ""
        for name in whole:
            query = f"horse{int(name.removeprefix('doc'))} number 1"
            assert base.search(query, limit=1)[0].document_id == name


def test_a_damaged_file_is_explained_whatever_is_asked(tmp_path: Path, write: Write) -> None:
    file = fill(tmp_path / "k", write, 3)
    overwrite(file, root_page(file, "documents"))
    with pytest.raises(DamagedError, match="knowledge rebuild"), open_base(tmp_path / "k") as base:
        base.documents()
