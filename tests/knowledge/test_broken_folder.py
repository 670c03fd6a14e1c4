"""A folder as people have them: each bad file fails with its own reason, and the good ones are all there."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.knowledge import KnowledgeBase

Write = Callable[[str, str | bytes], Path]

FILES: dict[str, tuple[bytes, str]] = {
    "binary.md": (bytes(range(256)) * 40, "not a document type we read (binary)"),
    "picture.html": (b"\x89PNG\r\n\x1a\n" + bytes(500), "not a document type we read (binary)"),
    "program": (b"\x7fELF\x02\x01\x01" + bytes(500), "not a document type we read (no suffix)"),
    "archive.txt": (b"PK\x03\x04" + bytes(range(256)) * 4, "not a document type we read (binary)"),
    "nothing.md": (b"", "empty"),
    "blank.txt": (b" \n\t\n" * 50, "empty"),
    "cut.ipynb": (b'{"cells": [{"cell_type": "markdown", "source": ["# A', "not a Jupyter notebook"),
    "no_text.html": (b"<html><head><title>x</title></head><body><script>1</script></body></html>", "no text"),
    "no.pdf": (b"%PDF-1.7\nnothing follows", "not a readable PDF"),
    "front.md": (b"+++\ntitle = \n+++\ntext\n", "not TOML"),
}
GOOD: dict[str, bytes] = {
    "latin.txt": "Größe der Kacheln im lokalen Speicher.".encode("latin-1"),
    "wide.txt": "Bänke und Wellen.".encode("utf-16"),
    "marked.md": b"\xef\xbb\xbf# Titel\n\nText mit Marke.\n",
    "windows.md": b"# Title\r\n\r\nLines that end as on Windows.\r\n",
    "old_mac.txt": b"Lines that end\rin the old way.\r",
    "half.txt": "Ein Text, der mitten in einem Zeichen end\u00e4".encode()[:-1],
    "nested/deep/er/note.md": b"# Deep\n\nBelow three folders.\n",
}


def test_each_bad_file_has_its_reason_and_no_good_one_is_missed(base: KnowledgeBase, write: Write) -> None:
    for name, (raw, _) in FILES.items():
        write(name, raw)
    for name, raw in GOOD.items():
        write(name, raw)
    folder = write("sparse.md", b"").parent
    os.truncate(folder / "sparse.md", 101 << 20)

    found = {str(Path(item.source).relative_to(folder)): item for item in base.add(folder).items}

    reasons = {name: reason for name, (_, reason) in FILES.items()} | {"sparse.md": "MiB"}
    assert found.keys() == {*reasons, *GOOD}
    wrong = {name: found[name] for name, reason in reasons.items() if reason not in found[name].reason}
    assert wrong == {} and all(found[name].status == "failed" for name in reasons)
    assert {name for name, item in found.items() if item.status == "added"} == set(GOOD)
    assert base.search("Größe der Kacheln")[0].document_id == "latin"
    assert len(base.failures()) == len(reasons)


def test_what_is_no_file_fails_without_being_waited_for(base: KnowledgeBase, write: Write) -> None:
    folder = write("good.md", "text\n").parent
    os.mkfifo(folder / "pipe.md")
    (folder / "round").symlink_to(folder, target_is_directory=True)
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "gone.md").symlink_to(folder / "nowhere")
    (folder / "null.md").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        # Paths of sockets are short.
        here = Path.cwd()
        os.chdir(folder)
        try:
            bound.bind("socket.md")
        finally:
            os.chdir(here)

        statuses = {Path(item.source).name: item for item in base.add(folder).items}

    assert statuses.pop("good.md").status == "added"
    assert {item.status for item in statuses.values()} == {"failed"}
    assert {"pipe.md", "loop.md", "gone.md", "null.md", "socket.md"} <= statuses.keys()
    assert all(item.reason and "\n" not in item.reason for item in statuses.values())


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_read_is_named(base: KnowledgeBase, write: Write) -> None:
    folder = write("good.md", "text\n").parent
    write("closed/inside.md", "text\n")
    (folder / "closed").chmod(0)
    try:
        items = base.add(folder).items
    finally:
        (folder / "closed").chmod(0o755)

    assert sorted(item.status for item in items) == ["added", "failed"]
    assert any("permission denied" in item.reason for item in items)
