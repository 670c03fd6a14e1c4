"""Export and import: one file, merged by content, refused as a whole when it is not what it should be."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_scientist.knowledge import FakeEmbedder, KnowledgeBase
from kernel_scientist.sandbox.errors import KernelScientistError, UsageError

Write = Callable[[str, str | bytes], Path]
NOTE = """+++
title = "Rings"
tags = ["ring"]
architectures = ["gfx942"]
sources = [{id = "s1", title = "Guide", url = "https://example.org", looked_up = "2026-12-01"}]
+++

## Zebra

A zebra ring [s1].

## Horse

A horse ring.
"""


class CountingEmbedder:
    """The fake one, which counts what it has to embed."""

    def __init__(self) -> None:
        self.name, self.dimensions, self.texts = FakeEmbedder.name, FakeEmbedder.dimensions, 0

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return FakeEmbedder().embed(texts)


def open_base(folder: Path, embedder: CountingEmbedder | None = None) -> KnowledgeBase:
    return KnowledgeBase.open(folder, embedder=embedder or FakeEmbedder(), library=False)


@pytest.fixture
def exported(base: KnowledgeBase, write: Write, tmp_path: Path) -> Path:
    base.add(write("ring.md", NOTE), write("tried.md", '+++\nkind = "experience"\n+++\n\nIt gave 12 %.\n'))
    base.export(tmp_path / "all.zip")
    return tmp_path / "all.zip"


def test_everything_is_the_same_elsewhere_and_nothing_is_embedded_again(
    base: KnowledgeBase, exported: Path, tmp_path: Path
) -> None:
    embedder = CountingEmbedder()
    with open_base(tmp_path / "other", embedder) as other:
        report = other.import_(exported)

        assert [item.status for item in report.items] == ["added", "added"]
        assert other.documents() == base.documents()
        assert other.passages("ring") == base.passages("ring")
        assert embedder.texts == 0 and other.status().indexed == 3
        assert other.search("zebra", limit=1)[0].citation == base.search("zebra", limit=1)[0].citation


def test_importing_twice_changes_nothing_but_missing_tags(
    base: KnowledgeBase, exported: Path, write: Write, tmp_path: Path
) -> None:
    with open_base(tmp_path / "other") as other:
        other.add(write("elsewhere/ring.md", NOTE), tags=["mine"])

        first, second = other.import_(exported), other.import_(exported)

        assert [item.status for item in first.items] == ["unchanged", "added"]
        assert [item.status for item in second.items] == ["unchanged", "unchanged"]
        assert set(other.document("ring").tags) == {"ring", "mine"}
        assert other.export(tmp_path / "again.zip") == other.documents()


def test_another_version_stays_until_it_is_to_be_replaced(
    base: KnowledgeBase, exported: Path, write: Write
) -> None:
    base.add(write("ring.md", NOTE.replace("horse", "camel")))

    kept = base.import_(exported)
    assert [item.status for item in kept.items] == ["failed", "unchanged"]
    assert "--replace" in kept.items[0].reason and base.search("camel", limit=1)[0].text == "A camel ring."

    assert [item.status for item in base.import_(exported, replace=True).items] == ["replaced", "unchanged"]
    assert base.passages("ring")[1].text == "A horse ring."
    assert (base.status().documents, base.status().waiting) == (2, 0)


def test_an_id_that_is_taken_gets_a_number(exported: Path, write: Write, tmp_path: Path) -> None:
    with open_base(tmp_path / "other") as other:
        other.add(write("elsewhere/ring.md", "something else\n"))
        assert [item.document_id for item in other.import_(exported).items] == ["ring-2", "tried"]


def test_vectors_of_another_model_are_carried_and_the_own_ones_made(
    base: KnowledgeBase, exported: Path, tmp_path: Path
) -> None:
    class Other:
        name, dimensions = "other", 3

        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))

    with KnowledgeBase.open(tmp_path / "other", embedder=Other(), library=False) as other:
        other.import_(exported)
        assert other.status().vectors == {"other": 3, FakeEmbedder.name: 3}
        assert other.status().waiting == 0


def rewritten(source: Path, to: Path, name: str, content: bytes | None) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(to, "w") as new:
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
            elif content is not None:
                new.writestr(part, content)
    return to


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("knowledge.json", None),
        ("knowledge.json", b"[]"),
        ("knowledge.json", b'{"format": "kernel-scientist knowledge", "version": 99, "embedders": {}}'),
        ("documents.jsonl", b'{"id": "x"}\n'),
        ("documents.jsonl", b"[" * 100_000 + b"\n"),
        ("documents.jsonl", b'{"cut": '),
        ("vectors/0.json", b"[0, 1, 9]"),
        ("vectors/0.npy", b"\x93NUMPY nonsense"),
        ("vectors/0.npy", None),
    ],
)
def test_what_is_no_whole_export_is_refused_as_a_whole(
    exported: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    bad = rewritten(exported, tmp_path / "bad.zip", name, content)
    with open_base(tmp_path / "other") as other:
        with pytest.raises(UsageError, match="not a whole export"):
            other.import_(bad)
        assert other.documents() == []


def test_a_date_that_is_none_stores_nothing(exported: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported) as archive:
        lines = [json.loads(line) for line in archive.read("documents.jsonl").splitlines()]
    lines[1]["added_at"] = "yesterday"
    content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    bad = rewritten(exported, tmp_path / "bad.zip", "documents.jsonl", content)
    with open_base(tmp_path / "other") as other:
        with pytest.raises(UsageError, match="date"):
            other.import_(bad)
        assert other.documents() == []


@pytest.mark.parametrize("where", ["missing.zip", "papers/ring.md", "papers"])
def test_a_file_that_is_none_is_a_sentence(
    base: KnowledgeBase, exported: Path, tmp_path: Path, where: str
) -> None:
    with pytest.raises(KernelScientistError, match=r"\.$"):
        base.import_(tmp_path / where)


def test_an_export_that_fails_leaves_what_was_there(
    base: KnowledgeBase, exported: Path, tmp_path: Path
) -> None:
    before = exported.read_bytes()
    with pytest.raises(KernelScientistError):
        base.export(tmp_path / "nowhere" / "all.zip")
    with pytest.raises(KernelScientistError):
        base.export(tmp_path)
    assert exported.read_bytes() == before
    assert not list(tmp_path.glob(".*.part")) and not list(tmp_path.parent.glob(".*.part"))
