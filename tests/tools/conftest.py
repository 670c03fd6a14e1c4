"""A small problem, its honest kernel, and a judge that is quick about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.targets import Target, resolve_target

PROBLEM = """
title = "Two-point filter"
description = "y[i] = 2 x[i] + x[i - 1], with x[-1] = 0."
kernels = ["honest.hip"]
distributions = ["normal", "ones"]
[inputs]
x = { dtype = "float32", shape = ["n"] }
[outputs]
y = { dtype = "float32", shape = ["n"] }
[domain]
n = { min = 1, max = 100000 }
[tolerance]
rtol = 1e-6
atol = 1e-6
[speed_of_light]
flops = "FLOPS"
bytes = "8 * n"
arithmetic = "float32"
[shapes.cpu]
tests = [{ n = 1 }, { n = 64 }, { n = 257 }]
benchmarks = [{ n = 8192 }, { n = 20001 }]
"""
REFERENCE = """
import numpy as np

def inputs(rng, distribution, n):
    x = np.ones(n) if distribution == "ones" else rng.standard_normal(n)
    return {"x": x.astype(np.float32)}

def reference(x):
    wide = x.astype(np.float64)
    return {"y": 2 * wide + np.concatenate(([0.0], wide[:-1]))}
"""
PLAN = """/* plan
[constants]
BLOCK = 64
[[launch]]
kernel = "filter"
grid = ["cdiv(n, BLOCK)"]
block = ["BLOCK"]
args = ["x", "y", "n"]
*/
#include <hip/hip_runtime.h>
"""
HONEST = """
__global__ void filter(const float* x, float* y, int n) {
  __shared__ float tile[BLOCK + 1];
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) tile[threadIdx.x + 1] = x[i];
  if (threadIdx.x == 0) tile[0] = i > 0 ? x[i - 1] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = 2.0f * tile[threadIdx.x + 1] + tile[threadIdx.x];
}
"""


def write_problem(folder: Path, *, flops: str = "3 * n", shapes: str = "cpu") -> Problem:
    """The problem as a folder; its shapes are those of the target `shapes`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = PROBLEM.replace("FLOPS", flops).replace("[shapes.cpu]", f"[shapes.{shapes}]")
    (folder / "problem.toml").write_text(text)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "honest.hip").write_text(PLAN + HONEST)
    return Problem.load(folder)


@pytest.fixture(scope="session")
def target() -> Target:
    return resolve_target("cpu")


@pytest.fixture(scope="session")
def quick() -> JudgeSettings:
    """Few pairs of short batches: enough to see a verdict, too few for a claim."""
    return JudgeSettings(
        screen=TierSettings(3, 3, 0.5, 3),
        confirm=TierSettings(8, 8, 1.0, 1_000_000),
        batch_s=0.004,
        max_runs=32,
    )


@pytest.fixture(scope="session")
def filter_problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return write_problem(tmp_path_factory.mktemp("filter"))


@pytest.fixture(scope="session")
def judge(filter_problem: Problem, target: Target, quick: JudgeSettings) -> Judge:
    return Judge(filter_problem, target, Kernel.load(filter_problem.default_kernel), settings=quick)


@pytest.fixture(scope="session")
def make_kernel() -> Callable[..., Kernel]:
    """A kernel from device code, and what to replace in the usual plan."""

    def make(code: str, **changes: str) -> Kernel:
        plan = PLAN
        for old, new in changes.items():
            assert old in plan
            plan = plan.replace(old, new)
        return Kernel.parse(plan + code)

    return make
