"""The vector index: real Chroma, derived from the store, replaced as a whole, never trusted when damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.knowledge.generations import Generations
from kernel_scientist.sandbox.files import FileLock

Write = Callable[[str, str | bytes], Path]
WORDS = ["bank", "wave", "tile", "cache", "lane", "spill", "queue", "atom"]


def fill(base: KnowledgeBase, write: Write, count: int = 8) -> None:
    for i in range(count):
        base.add(write(f"doc{i}.md", f"# Doc {i}\n\n{WORDS[i % 8]} {WORDS[i // 8 % 8]} number{i}\n"))


def generations(base: KnowledgeBase) -> Generations:
    return base._index._generations


def nearest(base: KnowledgeBase, text: str) -> list[int]:
    return base._index.search(FakeEmbedder().embed([text])[0], 3)


def exact(base: KnowledgeBase, text: str) -> list[int]:
    _, chunks, _, rows = base._store.vectors.of(FakeEmbedder.name)
    order = np.argsort(-(rows @ FakeEmbedder().embed([text])[0]), kind="stable")
    return [chunks[i] for i in order[:3]]


def reopened(base: KnowledgeBase) -> KnowledgeBase:
    base.close()
    return KnowledgeBase.open(base.path, embedder=FakeEmbedder(), library=False)


def test_chroma_holds_every_vector_and_answers_as_exact_search_does(
    base: KnowledgeBase, write: Write
) -> None:
    fill(base, write, 12)

    status = base.status()

    assert (status.chunks, status.indexed, status.waiting, status.note) == (12, 12, 0, "")
    assert nearest(base, "tile number2 wave")[0] == exact(base, "tile number2 wave")[0]
    assert base._index._open is not None  # the answer came from Chroma


def test_a_replaced_document_leaves_the_index(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 3)
    base.add(write("doc1.md", "# Doc 1\n\nsomething else entirely\n"))

    current = generations(base).current()

    assert current is not None and current.count == 3
    assert nearest(base, "something else entirely")[0] == exact(base, "something else entirely")[0]
    assert len(nearest(base, "wave bank number1")) == 3


@pytest.mark.parametrize("damage", ["missing", "pointer", "index files", "database", "emptied"])
def test_a_damaged_index_is_made_again_from_the_store(base: KnowledgeBase, write: Write, damage: str) -> None:
    fill(base, write)
    folder = generations(base).folder
    current = generations(base).current()
    assert current is not None
    version = folder / current.version
    base.close()
    match damage:
        case "missing":
            shutil.rmtree(folder)
        case "pointer":
            (folder / "current.json").write_text('{"version": ')
        case "index files":
            for file in version.rglob("*.bin"):
                file.write_bytes(b"\xff" * 100)
        case "database":
            (version / "chroma.sqlite3").write_bytes(b"not a database" * 1000)
        case _:
            shutil.rmtree(version)
            version.mkdir()

    with reopened(base) as again:
        found = nearest(again, "tile number2 bank")

        assert found[0] == exact(again, "tile number2 bank")[0]
        assert again._index._open is not None
        assert (again.status().indexed, again.status().waiting) == (8, 0)


@pytest.mark.slow
def test_a_store_that_hangs_is_given_up_in_its_own_process(
    base: KnowledgeBase, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_scientist.knowledge.generations._CHECK_TIMEOUT_S", 4.0)
    fill(base, write, 4)
    current = generations(base).current()
    assert current is not None
    data = next(generations(base).path(current.version).rglob("data_level0.bin"))
    data.unlink()
    os.mkfifo(data)  # whoever opens it waits for ever

    with reopened(base) as again:
        assert nearest(again, "tile number2 bank")[0] == exact(again, "tile number2 bank")[0]
        assert again._index._open is not None


def test_while_another_process_updates_the_index_a_search_does_without_it(
    base: KnowledgeBase, write: Write
) -> None:
    fill(base, write, 4)
    base.close()
    (generations(base).folder / "current.json").unlink()

    with FileLock(generations(base).folder / "writer.lock"), reopened(base) as again:
        assert nearest(again, "tile number2 bank")[0] == exact(again, "tile number2 bank")[0]
        assert "not brought up to date" in again.status().note
        assert again.status().waiting == 4


def test_a_reader_sees_what_another_one_adds(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 4)
    with KnowledgeBase.open(base.path, embedder=FakeEmbedder(), library=False) as reader:
        assert reader.search("number1")[0].id == "doc1#1"
        held = generations(base).current()

        for name in ("one", "two", "three"):
            base.add(write(f"{name}.md", f"fresh {name} zebra\n"))
        found = {p.id for p in reader.search("zebra", limit=3)}

        assert found == {"one#1", "two#1", "three#1"}
        assert held != generations(base).current()


def test_a_version_in_use_is_kept_and_others_are_deleted(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 2)
    folder = generations(base).folder
    first = generations(base).current()
    assert first is not None
    lease = generations(base).lease(first.version)
    assert lease is not None

    base.add(write("more.md", "more\n"))
    base.add(write("most.md", "most\n"))
    kept = {path.name for path in folder.iterdir() if path.is_dir()}
    current = generations(base).current()
    assert current is not None and kept == {first.version, current.version}

    lease.release()
    base.add(write("last.md", "last\n"))
    assert first.version not in {path.name for path in folder.iterdir() if path.is_dir()}


def test_leftovers_of_a_killed_writer_are_cleared_away(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 1)
    leftover = generations(base).folder / "0123456789ab"
    leftover.mkdir()
    (leftover / "chroma.sqlite3").write_bytes(b"half")

    base.add(write("more.md", "more\n"))

    assert not leftover.exists()


def test_rebuild_makes_a_new_index(base: KnowledgeBase, write: Write) -> None:
    fill(base, write, 2)
    before = generations(base).current()

    base.rebuild()

    after = generations(base).current()
    assert before is not None and after is not None
    assert (after.version != before.version, after.count) == (True, 2)
