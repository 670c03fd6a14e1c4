"""Recorded search spaces through the commands: no problem to name, and whose times they are is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..tools.recordings import cache_document, write_recording
from .conftest import Command


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "toy.json", cache_document())


@pytest.mark.slow
def test_a_session_plays_a_recording_back(command: Command, toy: Path, tmp_path: Path) -> None:
    done = command("run", "--target", "recorded:toy.json", "--generations", "2")

    assert done.code == 0, done.err
    assert (
        "toy: 3.00x (2.73x to 3.33x at 96.9 %) over the starting kernel, confirmed by the recording"
        in done.out
    )
    assert "times from the recording, not measured here" in done.out
    assert "nothing was compiled, checked or timed here" in done.out
    assert "by the recording: 3.00x" in done.err and "fresh pairs" not in done.out + done.err
    (run,) = (tmp_path / "runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert info["config"]["target"] == f"recorded:{toy}"
    assert "Some GPU" in info["device"] and "not measured here" in info["device"]
    assert "whose kernel holds no code" in command("export", "last").err


def test_bench_and_compare_need_no_problem_either(command: Command, toy: Path, tmp_path: Path) -> None:
    done = command("bench", "recorded", "--target", "recorded:toy.json", "--json")
    assert done.code == 0, done.err
    kernel = Path(done.json["kernel"])
    changed = tmp_path / "faster.hip"
    changed.write_text(kernel.read_text().replace("block = 32\n", "block = 64\n"))

    done = command("compare", kernel, changed, "--problem", "recorded:toy.json")
    assert done.code == 0, done.err
    assert "by the recording B is faster: 3 times as fast as A" in done.out
    assert "not measured here: median of the recorded repeats" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "name a problem, such as matmul"),
        (("bench", "x.hip"), "name a problem, such as matmul"),
        (("run", "--target", "recorded:"), "names no file"),
        (("run", "--target", "recorded:none.json"), "there is no such recording"),
        (("run", "matmul", "--target", "recorded:toy.json"), "problem 'matmul' is not what"),
        (("run", "recorded:toy.json", "--target", "cpu"), "has no shapes for this target"),
        (("export", "recorded", "--problem", "recorded:toy.json"), "whose kernel holds no code"),
    ],
)
@pytest.mark.slow
def test_a_wrong_combination_is_a_sentence(
    command: Command, toy: Path, arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = command(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err.splitlines()[-1]
    assert not (tmp_path / "runs").exists()
