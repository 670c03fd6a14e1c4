"""A problem of a user's own, in a folder whose name has a space."""

from __future__ import annotations

from pathlib import Path

from kernel_scientist.tools.problem import Problem

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
flops = "3 * n"
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


def write_problem(folder: Path) -> Problem:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "honest.hip").write_text(PLAN + HONEST)
    return Problem.load(folder)
