"""``kernel-scientist export``: what it writes where, and what it says of a run's candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_scientist.tools.problem import Problem

from ..tools.conftest import write_problem
from .conftest import Command
from .recorded import RUN_ID, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run of matmul whose kernels are the bundled one."""
    folder = write_run(tmp_path / "runs")
    text = Problem.load("matmul").default_kernel.read_text()
    for path in folder.rglob("kernel.hip"):
        path.write_text(text)
    return folder


def test_a_starting_kernel_is_exported_by_name(command: Command, tmp_path: Path) -> None:
    done = command("export", "two_pass", "--problem", "reduce_sum", "--json")
    assert done.code == 0, done.err
    assert done.json["files"] == ["reduce_sum_two_pass.hip"]
    assert done.json["measured"] == ["Its speed was not measured."]
    assert "int main(" in (tmp_path / "reduce_sum_two_pass.hip").read_text()


def test_nothing_is_overwritten_unasked(command: Command, tmp_path: Path) -> None:
    (tmp_path / "reduce_sum_two_pass.hip").write_text("mine")
    done = command("export", "two_pass", "--problem", "reduce_sum")
    assert done.code == 2
    assert "already there" in done.err
    assert (tmp_path / "reduce_sum_two_pass.hip").read_text() == "mine"


def test_the_best_kernel_of_a_run_brings_what_was_measured(
    command: Command, run: Path, tmp_path: Path
) -> None:
    done = command("export", RUN_ID, "--output", tmp_path / "best.hip")
    assert done.code == 0, done.err
    text = " ".join((tmp_path / "best.hip").read_text().replace("//", "").split())
    assert f"candidate 0002 of run {RUN_ID}" in text
    assert "3.21 times as fast as tiled.hip, 3.1 to 3.32 at 99 %" in text
    assert "says nothing about the speed on a GPU" in text


def test_a_failed_candidate_says_so(command: Command, run: Path, tmp_path: Path) -> None:
    done = command("export", RUN_ID, "--candidate", "0001", "--output", tmp_path / "one.hip")
    assert done.code == 0, done.err
    assert "compile_error" in (tmp_path / "one.hip").read_text()


def test_all_test_vectors_can_be_written_beside_it(command: Command, tmp_path: Path) -> None:
    problem = write_problem(tmp_path / "filter")
    done = command("export", "honest", "--problem", problem.folder, "--vectors", "all.vectors")
    assert done.code == 0, done.err
    assert (tmp_path / "all.vectors").read_bytes().startswith(b"kernel-scientist vectors 1 ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((RUN_ID, "--candidate", "9"), "has no candidate '9'"),
        ((RUN_ID, "--candidate", "1", "--problem", "matmul"), "give one of them"),
        (("nothing.hip", "--problem", "matmul"), "no such kernel file"),
        (("tiled", "--problem", "matmul", "--output", "no/such/folder.hip"), "does not exist"),
    ],
)
def test_faults_are_exit_code_2(command: Command, run: Path, arguments: tuple[str, ...], said: str) -> None:
    done = command("export", *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_kernel_file_needs_its_problem(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.hip").write_text("/* plan\n*/\n")
    done = command("export", "mine.hip")
    assert done.code == 2
    assert "--problem" in done.err
