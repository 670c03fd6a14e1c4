"""The paper's task on a GPU: block-scaled fp8 matrix multiplication on its 18 shapes, scaled down."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist.agents import Session
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings

from ..sandbox.fakehip.machine import FakeRocm

SHAPE = re.compile(r"m = (\d+), n = (\d+), k = (\d+)")


def smaller(match: re.Match[str]) -> str:
    """A small part of each, in the multiples that the task asks for."""
    m, n, k = map(int, match.groups())
    return f"m = {_up(m / 48, 64)}, n = {_up(n / 32, 64)}, k = {_up(k / 24, 128)}"


def _up(value: float, multiple: int) -> int:
    return int(-(-value // multiple)) * multiple


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    folder = tmp_path / "fp8_gemm"
    shutil.copytree(Problem.load("fp8_gemm").folder, folder)
    text = (folder / "problem.toml").read_text()
    head, _, shapes = text.partition("[shapes.mi300]")
    (folder / "problem.toml").write_text(f"{head}[shapes.mi300]{SHAPE.sub(smaller, shapes)}")
    return Problem.load(folder)


@pytest.mark.slow
@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_a_session_on_the_papers_task_with_its_18_shapes(
    request: pytest.FixtureRequest, real_device: bool, problem: Problem, tmp_path: Path
) -> None:
    rocm: FakeRocm | None = None if real_device else request.getfixturevalue("rocm")
    tier = TierSettings(1, 1, 0.1, 3, warm_up=1)
    settings = JudgeSettings(
        screen=tier,
        confirm=replace(tier, checked_runs=1_000_000),
        batch_s=0.002,
        max_runs=2,
        held_out_shapes=0,
        timeout_s=20.0,
    )
    session = Session(
        problem,
        kernel="mfma",
        target="mi300",
        judge=settings,
        generations=1,
        experiments=1,
        seed=1,
        runs_dir=tmp_path / "runs",
    )
    with rocm.calls() if rocm is not None else nullcontext([]) as log:
        result = session.run()
    assert result.status in ("improved", "not_improved"), result.stop_reason
    judged = [one.evaluation for one in result.run.candidates() if one.evaluation is not None]
    assert len(judged) == 2
    for evaluation in judged:
        assert evaluation.accepted, evaluation.message
        assert "gfx942" in evaluation.device
        assert len(evaluation.timings) == 18
        assert len({tuple(timing.shape.items()) for timing in evaluation.timings}) >= 8
        assert all(one.bound_us is not None and one.bound_us < one.time_us for one in evaluation.timings)
    assert sum(one.instructions["mfma"] for one in judged[0].resources) > 0
    assert not [line for line in log if "misuse" in line]
    ends = [line.partition(" exit ")[2] for line in log if " exit " in line]
    assert set(ends) <= {"blocks=0 events=0 streams=0 modules=0"}
