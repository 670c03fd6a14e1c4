"""``knowledge add`` and ``retry``: what is shown while and after documents are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.agents.cli.adding import Pace
from kernel_scientist.knowledge import AddItem, AddProgress

from .conftest import Command


@pytest.mark.slow
def test_what_failed_is_in_the_table_and_is_added_by_a_retry(command: Command, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# Wombat tiles\n\nText.\n")
    broken = tmp_path / "broken.md"
    broken.write_text("+++\nno\n+++\n")
    (tmp_path / "m.toml").write_text('[[document]]\npath = "good.md"\ntitle = "Numbat tiles"\n')
    home = {"KERNEL_SCIENTIST_HOME": str(tmp_path / "home")}

    added = command("knowledge", "add", broken, "--manifest", "m.toml", env=home)
    listed = command("knowledge", "retry", "--list", "--json", env=home)
    broken.write_text("# Mended\n\nText.\n")
    again = command("knowledge", "retry", "--json", env=home)
    last = command("knowledge", "retry", "--list", "--json", env=home)

    assert added.code == 6
    assert "failed" in added.out and "the front matter is not TOML" in added.out
    assert "1 of 2 could not be added" in added.err and "knowledge retry" in added.err
    assert [failure["source"] for failure in listed.json] == [str(broken)]
    assert again.code == 0 and again.json["counts"]["added"] == 1
    assert last.json == []


def test_nothing_to_add_and_a_manifest_that_is_not_there_are_usage_errors(command: Command) -> None:
    assert command("knowledge", "add").code == 2
    assert command("knowledge", "add", "--manifest", "none.toml").code == 2
    assert command("knowledge", "retry", "--list", "--forget").code == 2


def test_the_pace_says_how_fast_it_goes_and_how_long_it_still_takes() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    assert (
        pace.line(AddProgress(None, 0, 4, "/papers/a.pdf")) == "0 of 4 documents, 0 passages, /papers/a.pdf"
    )
    now = 30.0

    line = pace.line(AddProgress(AddItem("/papers/a.pdf", "added"), 1, 4, "/papers/a.pdf", 60, 0.25))

    assert line == "1 of 4 documents, 60 passages, 2.0 passages/s, 1:30 left"
    assert "left" not in pace.line(AddProgress(AddItem("b", "added"), 4, 4, "b", 60, 1.0))
