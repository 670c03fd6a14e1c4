"""`knowledge show|remove|status` as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_HOME", str(tmp_path / "home"))


def test_a_document_is_shown_with_its_sources_and_removed(command: Command, tmp_path: Path) -> None:
    note = tmp_path / "ring.md"
    note.write_text(
        '+++\ntitle = "Rings"\nsources = [{id = "s1", title = "Guide", url = "https://example.org", '
        'looked_up = "2026-12-01"}]\n+++\n\nA quokka ring buffer [s1]. \x1b[2J\n'
    )
    command("knowledge", "add", note)

    shown = command("knowledge", "show", "ring.md")
    as_json = command("knowledge", "show", "ring#1", "--json").json
    found = command("knowledge", "search", "quokka", "--limit", "1", "--json").json
    removed = command("knowledge", "remove", "ring", "--json")
    again = command("knowledge", "remove", "ring", "--json")

    assert "[s1] Guide, https://example.org, looked up 2026-12-01" in shown.out
    assert "quokka ring buffer" in shown.out and "\x1b" not in shown.out
    assert [one["id"] for one in as_json["passages"]] == ["ring#1"]
    assert found[0]["reasons"] == ["words", "meaning"]
    assert (removed.code, [one["id"] for one in removed.json]) == (0, ["ring"])
    assert again.code == 2 and "no document 'ring'" in again.json["error"]["message"]


def test_status_says_what_is_there(command: Command) -> None:
    done = command("knowledge", "status")
    assert done.code == 0
    assert "database" in done.out and "whole" in done.out and "bundled" in done.out


@pytest.mark.slow
def test_documents_are_exported_and_imported(command: Command, tmp_path: Path) -> None:
    (tmp_path / "ring.md").write_text("A quokka ring buffer.\n")
    command("knowledge", "add", tmp_path / "ring.md")

    exported = command("knowledge", "export", "all.zip")
    imported = command(
        "knowledge", "import", "all.zip", "--json", env={"KERNEL_SCIENTIST_HOME": str(tmp_path / "other")}
    )
    wrong = command("knowledge", "import", "ring.md", "--json")

    assert (exported.code, exported.out) == (0, "1 document in all.zip\n")
    assert (imported.code, [one["status"] for one in imported.json["items"]]) == (0, ["added"])
    assert wrong.code == 2 and "not a whole export" in wrong.json["error"]["message"]


@pytest.mark.slow
def test_a_damaged_database_is_explained_and_repaired(command: Command, tmp_path: Path) -> None:
    (tmp_path / "home" / "knowledge").mkdir(parents=True)
    (tmp_path / "home" / "knowledge" / "knowledge.sqlite3").write_bytes(b"no database" * 1000)

    listed = command("knowledge", "list")
    rebuilt = command("knowledge", "rebuild", "--json")

    assert listed.code == 2 and "knowledge rebuild" in listed.err
    assert rebuilt.code == 0 and Path(rebuilt.json["repaired"]["damaged"]).is_file()
    assert rebuilt.json["indexed"] == rebuilt.json["chunks"] > 0
    assert command("knowledge", "status").code == 0


def test_a_server_that_is_not_there_is_one_sentence(command: Command) -> None:
    done = command("knowledge", "list", "--chroma", "http://127.0.0.1:9")
    wrong = command("knowledge", "list", env={"KERNEL_SCIENTIST_CHROMA": "nonsense"})
    assert (done.code, wrong.code) == (5, 2)
    assert "No Chroma server answers at http://127.0.0.1:9" in done.err.splitlines()[-1]
    assert "'nonsense' is not the address" in wrong.err
