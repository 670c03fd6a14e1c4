"""The paper's task on a GPU: block-scaled fp8 matrix multiplication on its 18 shapes, scaled down."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets import resolve_target

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
def test_the_papers_task_is_judged_on_its_18_shapes(
    request: pytest.FixtureRequest, real_device: bool, problem: Problem
) -> None:
    if not real_device:
        request.getfixturevalue("rocm")
    tier = TierSettings(1, 1, 0.1, 3, warm_up=1)
    settings = JudgeSettings(
        screen=tier,
        confirm=replace(tier, checked_runs=1_000_000),
        batch_s=0.002,
        max_runs=2,
        held_out_shapes=0,
        timeout_s=20.0,
    )
    judge = Judge(problem, resolve_target("mi300"), Kernel.load(problem.default_kernel), settings=settings)
    evaluation = judge.evaluate(Kernel.load(problem.folder / "mfma.hip"))
    assert evaluation.accepted, evaluation.message
    assert len(evaluation.timings) == 18
    assert len({tuple(timing.shape.items()) for timing in evaluation.timings}) >= 8
    assert all(
        timing.bound_us is not None and timing.bound_us < timing.time_us for timing in evaluation.timings
    )
    assert sum(one.instructions["mfma"] for one in evaluation.resources) > 0
