"""A problem of one's own, small enough that a whole session on it takes seconds."""

from __future__ import annotations

from pathlib import Path

PROBLEM = """
title = "Scaling, fp32"
description = "y = 2 x"
kernels = ["start.hip"]
distributions = ["normal"]
[inputs]
x = { dtype = "float32", shape = ["n"] }
[outputs]
y = { dtype = "float32", shape = ["n"] }
[domain]
n = { min = 1, max = 100000 }
[tolerance]
rtol = 1e-6
[speed_of_light]
flops = "n"
bytes = "8 * n"
arithmetic = "float32"
[shapes.cpu]
tests = [{ n = 1 }, { n = 130 }]
benchmarks = [{ n = 4096 }]
"""

REFERENCE = """
import numpy as np

def inputs(rng, distribution, n):
    return {"x": rng.standard_normal(n).astype(np.float32)}

def reference(x):
    return {"y": 2.0 * x.astype(np.float64)}
"""

# WORK repeats the multiplication, so that there is something to win whatever the machine is busy with.
KERNEL = """/* plan
[constants]
WORK = 64
[tune]
WORK = [1, 8, 64]
[[launch]]
kernel = "scale"
grid = "cdiv(n, 64)"
block = 64
args = ["x", "y", "n"]
*/
#include <hip/hip_runtime.h>
__global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  __shared__ float staged[64];
  for (int step = 0; step < WORK; ++step) {
    staged[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
  }
  if (i < n) y[i] = 2.0f * staged[threadIdx.x];
}
"""


def write_problem(folder: Path) -> Path:
    """Write the problem into `folder`, which is made."""
    folder.mkdir(parents=True)
    (folder / "problem.toml").write_text(PROBLEM, encoding="utf-8")
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    (folder / "start.hip").write_text(KERNEL, encoding="utf-8")
    return folder
