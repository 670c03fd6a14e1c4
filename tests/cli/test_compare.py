"""``compare``: two kernels side by side, or two runs; and the plot that goes with it."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.agents.cli import main
from kernel_scientist.agents.cli.plot import interval_plot
from kernel_scientist.tools import judge
from kernel_scientist.tools.evaluation import Interval
from kernel_scientist.tools.settings import JudgeSettings, TierSettings

from .conftest import Command
from .recorded import RUN_ID, write_run

PROBLEM = """
title = "Doubling"
description = "y = 2 x"
kernels = ["loop.hip"]
distributions = ["normal"]
[inputs]
x = { dtype = "float32", shape = ["n"] }
[outputs]
y = { dtype = "float32", shape = ["n"] }
[domain]
n = { min = 1, max = 60000 }
[tolerance]
rtol = 1e-6
[speed_of_light]
flops = "n"
bytes = "8 * n"
arithmetic = "float32"
[shapes.cpu]
tests = [{ n = 100 }]
benchmarks = [{ n = 4096 }]
"""
REFERENCE = """
import numpy as np

def inputs(rng, distribution, n):
    return {"x": rng.standard_normal(n).astype(np.float32)}

def reference(x):
    return {"y": 2 * x.astype(np.float64)}
"""
KERNEL = """/* plan
[[launch]]
kernel = "twice"
grid = ["cdiv(n, 64)"]
block = [64]
args = ["x", "y", "n"]
*/
#include <hip/hip_runtime.h>
__global__ void twice(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  for (volatile int k = 0; k < ROUNDS; k = k + 1) {}
  if (i < n) y[i] = FACTOR * x[i];
}
"""


def kernel(rounds: int = 0, factor: str = "2.0f") -> str:
    return KERNEL.replace("ROUNDS", str(rounds)).replace("FACTOR", factor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small problem with a fast, a slow, a wrong and a broken kernel."""
    folder = tmp_path_factory.mktemp("doubling")
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "loop.hip").write_text(kernel(rounds=40))
    (folder / "fast.hip").write_text(kernel())
    (folder / "wrong.hip").write_text(kernel(factor="3.0f"))
    (folder / "no_plan.hip").write_text(kernel().replace("/* plan", "/* no"))
    (folder / "bad_plan.hip").write_text(kernel().replace('"y", "n"', '"z", "n"'))
    return folder


def run(*arguments: str | Path) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(one) for one in arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that takes fewer pairs than the confirm tier's."""
    pairs = TierSettings(10, 10, 1.0, 1_000_000)
    settings = JudgeSettings(screen=pairs, confirm=pairs, batch_s=0.004, max_runs=32)
    monkeypatch.setattr(judge, "JudgeSettings", lambda: settings)


@pytest.mark.usefixtures("quick")
def test_two_kernels_are_measured_with_everything_that_a_claim_needs(folder: Path) -> None:
    code, out, err = run("compare", "loop", folder / "fast.hip", "--problem", folder)
    assert code == 0, err
    assert "B is faster than A" in out
    for expected in ("n=4096", "speed-up of B (99 %)", "pairs", "Hodges-Lehmann", "noise", "sandbox"):
        assert expected in out, out
    lines = out.splitlines()
    (bar,) = [line for line in lines if line.startswith("n=4096") and "o" in line and "µs" not in line]
    assert bar.index("|") < bar.index("o"), "B stands right of 1"
    assert max(map(len, lines[2:])) <= 80
    assert "predict nothing for an" in err


def test_with_json_the_comparison_is_one_document(command: Command, folder: Path) -> None:
    done = command("compare", "loop", folder / "wrong.hip", "--problem", folder, "--json")
    assert done.code == 6, done.err
    comparison = done.json["comparison"]
    assert (comparison["a"]["verdict"], comparison["b"]["verdict"]) == ("accepted", "wrong_result")
    assert comparison["speedup"]["high"] is None, "JSON has no infinity"
    assert "no claim" in comparison["claim"]


@pytest.mark.parametrize(
    ("a", "b"), [("no_plan", "fast"), ("fast", "no_plan"), ("bad_plan", "fast"), ("fast", "absent")]
)
def test_a_file_that_is_no_kernel_is_one_sentence_naming_it(folder: Path, a: str, b: str) -> None:
    code, out, err = run("compare", folder / f"{a}.hip", folder / f"{b}.hip", "--problem", folder)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"{b if a == 'fast' else a}.hip" in err


def test_a_kernel_that_is_not_accepted_is_named_with_its_evidence(folder: Path) -> None:
    code, out, _ = run("compare", folder / "wrong.hip", folder / "fast.hip", "--problem", folder)
    assert code == 6
    assert "A: wrong_result\n  | on shape n=100" in out
    assert "B: right, not timed" in out
    assert "no claim: A is not accepted" in out


def test_kernels_without_a_problem_are_told_what_is_missing(folder: Path) -> None:
    code, _, err = run("compare", folder / "loop.hip", folder / "fast.hip")
    assert code == 2
    assert "--problem" in err


def test_two_runs_are_laid_side_by_side_and_nothing_is_measured(tmp_path: Path) -> None:
    first = write_run(tmp_path / "one")
    second = write_run(tmp_path / "two", finished=False)
    code, out, _ = run("compare", first, second)
    assert code == 0
    for expected in (
        "improved",
        "running",
        "3.21x (3.10x to 3.32x at 99 %)",
        "120",
        "confirmed in fresh pairs",
    ):
        assert expected in out, out
    assert "nothing was measured anew" in out


def test_two_runs_as_json(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "runs")
    code, out, _ = run("compare", RUN_ID, "last", "--runs-dir", folder.parent, "--json")
    values: dict[str, Any] = json.loads(out)
    assert (code, values["measured_anew"]) == (0, False)
    assert values["a"] == values["b"]
    assert values["a"]["speedup"]["value"] == 3.21


def test_an_unknown_run_is_a_usage_error(tmp_path: Path) -> None:
    write_run(tmp_path / "runs")
    code, _, err = run("compare", "last", "nothing", "--runs-dir", tmp_path / "runs")
    assert code == 2
    assert "nothing" in err


def ratio(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high, 0.99)


def test_the_plot_shows_which_is_larger_and_where_one_is() -> None:
    lines = interval_plot([("slower", ratio(0.8, 0.7, 0.9)), ("faster", ratio(1.5, 1.4, 1.6))])
    slower, faster, ruler, labels = lines
    assert slower.index("o") < slower.index("|") == faster.index("|") == ruler.index("|")
    assert faster.index("[") > faster.index("|")
    assert labels.index("1x") in range(ruler.index("|") - 2, ruler.index("|") + 1)


def test_an_interval_beyond_the_axis_is_drawn_as_going_on() -> None:
    line = interval_plot([("x", ratio(1.0, 0.0, math.inf))])[0]
    assert "<" in line and line.endswith(">")


POSITIVE = st.floats(1e-12, 1e12)


ROW = st.tuples(st.text(min_size=1, max_size=60), POSITIVE, POSITIVE, POSITIVE)


ROW = st.tuples(st.text(min_size=1, max_size=60), POSITIVE, POSITIVE, POSITIVE)


@given(st.lists(ROW, min_size=1, max_size=6), st.integers(50, 120))
def test_the_plot_fits_its_width(rows: list[tuple[str, float, float, float]], width: int) -> None:
    intervals = [(label, ratio(*(sorted(ends)[i] for i in (1, 0, 2)))) for label, *ends in rows]
    lines = interval_plot(intervals, width=width)
    assert len(lines) == len(rows) + 2
    assert max(map(len, lines)) <= width
    assert lines[-2].count("|") == 1
