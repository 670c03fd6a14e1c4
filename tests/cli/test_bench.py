"""``bench``: the judge alone. A plan that cannot be launched is exit 2, a kernel that fails is exit 6."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.tools.problem import Problem

from .conftest import Command

STARTING = Problem.load("transpose").default_kernel.read_text(encoding="utf-8")


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """Where a changed kernel is written; see `change`."""
    return tmp_path / "mine.hip"


def change(file: Path, old: str, new: str) -> None:
    assert old in STARTING
    file.write_text(STARTING.replace(old, new), encoding="utf-8")


def test_a_starting_kernel_is_accepted_with_times_and_a_gfx942_report(command: Command) -> None:
    done = command("bench", "tiled", "--problem", "transpose")
    assert done.code == 0, done.out + done.err
    for expected in ("accepted", "rows=256 columns=512", "VGPRs", "occupancy", "correctness", "sandbox"):
        assert expected in done.out
    assert "predict nothing for an" in done.err


@pytest.mark.slow
def test_a_changed_kernel_is_measured_against_the_starting_one(command: Command, edited: Path) -> None:
    change(edited, "TILE = 16 ", "TILE = 32 ")
    done = command("bench", edited, "--problem", "transpose", "--json")
    evaluation = done.json["evaluation"]
    assert (done.code, evaluation["verdict"]) == (0, "accepted")
    low, value, high = (evaluation["speedup"][name] for name in ("low", "value", "high"))
    assert 0 < low <= value <= high
    assert evaluation["resources"][0]["arch"] == "gfx942"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[constants]", "[constants", "mine.hip"),
        ('kernel = "transpose"', 'kernel = "transposed"', "transposed"),
        ('"rows", "columns"]', '"x", "columns"]', "argument 3"),
    ],
)
@pytest.mark.slow
def test_a_plan_that_cannot_be_launched_is_one_sentence_naming_the_file(
    command: Command, edited: Path, old: str, new: str, says: str
) -> None:
    change(edited, old, new)
    done = command("bench", edited, "--problem", "transpose")
    assert (done.code, done.out) == (2, ""), done.out
    assert "mine.hip" in done.err
    assert says in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "verdict", "says"),
    [
        ("= tile[tx][i];", "= tile[tx][i] + 1;", "wrong_result", "y"),
    ],
)
def test_a_kernel_that_fails_is_exit_code_6_with_the_evidence(
    command: Command, edited: Path, old: str, new: str, verdict: str, says: str
) -> None:
    change(edited, old, new)
    done = command("bench", edited, "--problem", "transpose")
    assert done.code == 6, done.err
    assert f"{verdict}:" in done.out
    assert says in done.out
