"""Adding documents: what is added, replaced, left alone or refused; nothing is skipped in silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import AddProgress, KnowledgeBase
from kernel_scientist.sandbox.errors import UsageError

Write = Callable[[str, str | bytes], Path]


def test_a_folder_is_added_with_all_below_it(base: KnowledgeBase, write: Write) -> None:
    write("a.md", "# First\n\nText on banks.\n")
    write("deep/b.txt", "Second\n\nText on waves.\n")
    write("deep/image.png", b"\x89PNG\0")
    write(".git/config", "hidden")
    folder = write("c.hip", "__global__ void k() {}\n").parent
    seen: list[AddProgress] = []

    report = base.add(folder, progress=seen.append)

    by_name = {Path(item.source).name: item for item in report.items}
    assert {name: item.status for name, item in by_name.items()} == {
        "a.md": "added",
        "b.txt": "added",
        "c.hip": "added",
        "image.png": "failed",
    }
    assert "convert it" in by_name["image.png"].reason
    assert [p.done for p in seen if p.item] == [1, 2, 3, 4] and seen[-1].total == 4
    assert [d.title for d in base.documents()] == ["First", "c.hip", "Second"]
    assert [d.id for d in base.documents()] == ["a", "c", "b"]


def test_adding_again_changes_nothing_and_a_changed_file_replaces_itself(
    base: KnowledgeBase, write: Write
) -> None:
    path = write("a.md", "# Banks\n\nThirty-two of them.\n")
    first = base.add(path).items[0]
    assert (first.status, first.chunks, first.document_id) == ("added", 1, "a")
    assert base.add(path).items[0].status == "unchanged"

    write("a.md", "# Banks\n\nSixty-four of them.\n\n## More\n\nYes.\n")
    changed = base.add(path).items[0]

    assert (changed.status, changed.chunks, changed.document_id) == ("replaced", 2, "a")
    assert [p.text for p in base.search("banks", limit=9)] != []
    assert all("Thirty" not in p.text for p in base.search("thirty two", limit=9))


def test_the_same_content_elsewhere_is_not_stored_twice(base: KnowledgeBase, write: Write) -> None:
    original = write("a.md", "# T\n\ntext\n")
    base.add(original)

    copy = base.add(write("copy.md", "# T\n\ntext\n")).items[0]

    assert copy.status == "unchanged" and str(original) in copy.reason
    assert len(base.documents()) == 1


def test_two_files_of_one_name_get_different_ids(base: KnowledgeBase, write: Write) -> None:
    base.add(write("x/Readme File.md", "one\n"), write("y/Readme File.md", "two\n"))

    assert [d.id for d in base.documents()] == ["readme-file", "readme-file-2"]


def test_passages_of_a_long_document_are_counted_while_it_is_added(base: KnowledgeBase, write: Write) -> None:
    path = write("long.md", "".join(f"## Part {n}\n\nText {n}.\n\n" for n in range(100)))
    seen: list[AddProgress] = []

    base.add(path, progress=seen.append)

    assert [p.passages for p in seen] == sorted(p.passages for p in seen)
    assert any(0 < p.passages < 100 and 0 < p.share < 1 for p in seen)
    assert seen[-1].passages == 100 and seen[-1].share == 1


def test_what_failed_is_remembered_and_tried_again_as_it_was_wanted(
    base: KnowledgeBase, write: Write
) -> None:
    path = write("a.md", "+++\nbroken\n+++\n")
    base.add(path, write("b.png", "x"), tags=["mine"])
    assert [f.source for f in base.failures()] == [str(path), str(path.parent / "b.png")]
    assert "not TOML" in base.failures()[0].reason
    write("a.md", "mended\n")

    report = base.retry()

    assert [item.status for item in report.items] == ["added", "failed"]
    assert [f.source for f in base.failures()] == [str(path.parent / "b.png")]
    assert base.documents()[0].tags == ("mine",)
    base.forget_failures()
    assert base.failures() == [] and base.retry().items == ()


def test_only_what_failed_can_be_tried_again(base: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="not among what failed"):
        base.retry("/nowhere")


def test_tags_are_kept_and_added_to(base: KnowledgeBase, write: Write) -> None:
    path = write("a.md", '+++\ntags = ["lds"]\n+++\n\ntext\n')
    base.add(path, tags=["mine"])
    base.add(path, tags=["later"])

    assert base.documents()[0].tags == ("lds", "mine", "later")
    assert [p.id for p in base.search("text", tags=["later", "lds"])] == ["a#1"]
    assert base.search("text", tags=["other"]) == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("/nowhere/paper.md", "no such file"),
        ("arXiv:9999", "no arXiv identifier"),
        ("ftp://example.org/paper", "download it"),
        ("/dev/null", "neither a file nor a folder"),
        ("~nosuchuser-here/paper.md", "cannot be found"),
        ("a\0b", "cannot be found"),
    ],
)
def test_a_source_that_is_no_file_fails_with_its_reason(
    base: KnowledgeBase, write: Write, source: str, complaint: str
) -> None:
    report = base.add(source, write("good.md", "text\n"))

    assert report.items[0].status == "failed" and complaint in report.items[0].reason
    assert report.items[1].status == "added"
    assert report.count("failed") == 1 == len(report.failed)


def test_what_is_missing_is_remembered_by_its_whole_path(
    base: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base.add("later.md")

    assert [failure.source for failure in base.failures()] == [str(tmp_path.resolve() / "later.md")]


def test_a_file_whose_name_is_not_text_fails_and_stops_nothing(base: KnowledgeBase, write: Write) -> None:
    folder = write("good.md", "text\n").parent
    try:
        Path(os.fsdecode(bytes(folder) + b"/caf\xe9.md")).write_text("text\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")

    items = base.add(folder).items

    assert [item.status for item in items] == ["failed", "added"]
    assert items[0].source.endswith("caf\\udce9.md") and "rename it" in items[0].reason


def test_an_empty_folder_is_a_failure_not_a_success_of_nothing(base: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert base.add(tmp_path / "empty").items[0].reason == "the folder holds no files"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_fails_with_its_reason(base: KnowledgeBase, write: Write) -> None:
    path = write("a.md", "text\n")
    path.chmod(0)

    assert base.add(path).items[0].reason == "it cannot be read: permission denied"


def test_a_dangling_link_fails_and_a_link_to_a_file_is_that_file(
    base: KnowledgeBase, write: Write, tmp_path: Path
) -> None:
    folder = write("a.md", "text\n").parent
    (folder / "gone.md").symlink_to(tmp_path / "gone")

    statuses = {Path(item.source).name: item.status for item in base.add(folder).items}

    assert statuses == {"a.md": "added", "gone.md": "failed"}
