"""``kernel-scientist problem new``: a folder, and what is still to be done in it."""

from __future__ import annotations

from pathlib import Path

from .conftest import Command

PROGRAM = Path(__file__).parent.parent / "tools/program/programs/vector_add.hip"


def test_a_proposal_says_what_is_left_to_fill_in(command: Command, tmp_path: Path) -> None:
    done = command("problem", "new", "mine", "--from", PROGRAM, "--json")
    assert done.code == 0, done.err
    assert done.json["files"] == ["problem.toml", "reference.py", "vector_add.hip"]
    assert all("still to be filled in" in one for one in done.json["findings"])
    checked = command("problem", "check", "mine")
    assert checked.code == 6
    assert "still to be filled in" in checked.out


def test_the_template_passes_its_check(command: Command, tmp_path: Path) -> None:
    assert command("problem", "new", "mine", "--output", "problems").code == 0
    assert command("problem", "check", "problems/mine").code == 0


def test_a_missing_program_is_exit_code_2(command: Command) -> None:
    done = command("problem", "new", "mine", "--from", "nothing.hip")
    assert done.code == 2
    assert "nothing.hip" in done.err
