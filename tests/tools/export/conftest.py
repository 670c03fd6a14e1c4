"""Exported HIP files built with a test's hipcc, and a problem whose plan uses all that a plan may."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.tools.problem import Problem

from ...sandbox.fakehip.machine import FakeRocm

PROBLEM = """
title = "Weighted rows"
description = "y[r] = the sum over c of x[r, c] * scale; z[r] = r + n, counted."
kernels = ["everything.hip"]
distributions = ["normal", "ones"]
[inputs]
x = { dtype = "float32", shape = ["rows", "n"], order = "F" }
[outputs]
y = { dtype = "float16", shape = ["rows"] }
z = { dtype = "int32", shape = ["rows"] }
[scalars]
scale = { dtype = "float32", value = "1 / n" }
[domain]
rows = { min = 1, max = 4096 }
n = { min = 4, max = 4096, multiple_of = 4 }
[tolerance]
rtol = 1e-3
atol = 1e-3
[speed_of_light]
flops = "2 * rows * n"
bytes = "4 * rows * n + 6 * rows"
arithmetic = "float32"
[shapes.cpu]
tests = [{ rows = 1, n = 4 }, { rows = 70, n = 64 }, { rows = 5, n = 1000 }]
benchmarks = [{ rows = 64, n = 128 }, { rows = 3, n = 600 }]
"""
REFERENCE = """
import numpy as np

def inputs(rng, distribution, rows, n):
    x = np.ones((rows, n)) if distribution == "ones" else rng.standard_normal((rows, n))
    return {"x": x.astype(np.float32)}

def reference(x, scale):
    rows, n = x.shape
    return {"y": x.astype(np.float64).sum(axis=1) * scale, "z": np.arange(rows, dtype=np.int32) + n}
"""
KERNEL = """// A licence of its own.
/* plan
[constants]
SPLITS = "4 if n > 512 else 1"
THREADS = 64
HALF = "THREADS // 2 + 0 * -7 // 2"
[[scratch]]
name = "total"
dtype = "float32"
size = "rows * SPLITS"
init = 0.5
[[scratch]]
name = "grid"
dtype = "int32"
size = "rows"
init = -3
[[launch]]
kernel = "ns::add<THREADS, 1>"
repeat = "SPLITS"
grid = "cdiv(rows, THREADS)"
block = ["HALF", 2]
lds = "4 * THREADS"
args = ["x", "total", "rows", "n", "step * (n // SPLITS)", "(step + 1) * (n // SPLITS)", "step"]
[[launch]]
when = "SPLITS > 1 and not rows > 4096"
kernel = "gather"
grid = "rows"
block = 1
args = ["total", "rows", "SPLITS"]
[[launch]]
kernel = "finish"
grid = ["min(rows, 7)", 1, 1]
block = "max(1, THREADS % 48, 2 ** 3)"
args = ["total", "y", "z", "grid", "rows", "scale", "n / 1 + 0.0"]
*/
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#pragma once
#define WIDTH (THREADS)
#if SPLITS > 1
#define MODE 1
#else
#define MODE 2
#endif

namespace ns {
template <int THREADS_, int unused>
__global__ void add(const float* x, float* total, int rows, long n, int begin, int end, unsigned char step) {
  extern __shared__ float staged[];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, r = blockIdx.x * WIDTH + thread;
  staged[thread] = 0.0f;
  __syncthreads();
  for (int c = begin; c < end && r < rows; ++c) staged[WIDTH - 1 - thread] += x[(size_t)c * rows + r];
  __syncthreads();
  if (r < rows) total[step * rows + r] += staged[WIDTH - 1 - thread];
}
}

__global__ void gather(float* total, int rows, int splits) {
  for (int s = 1; s < splits; ++s) total[blockIdx.x] += total[s * rows + blockIdx.x] - 0.5f;
}

__global__ void finish(const float* total, __half* y, int* z, const int* counts, int rows, float scale,
                       double n) {
  for (int r = blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += gridDim.x * blockDim.x) {
    y[r] = __float2half((total[r] - 0.5f) * scale);
    z[r] = r + (int)n + counts[r] + 3 + (MODE == 2 ? SPLITS - 1 : 0);
  }
}
"""


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A problem whose kernel has a portfolio, scratch with values, dynamic LDS, repetition and conditions."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "problem.toml").write_text(PROBLEM)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "everything.hip").write_text(KERNEL)
    return Problem.load(folder)


@dataclass(frozen=True)
class Hipcc:
    """Compiles exported files into programs for a GPU that runs kernels on the CPU."""

    path: Path

    def build(self, source: Path, *options: str) -> Path:
        program = source.with_suffix("")
        command = [self.path, "-O1", "-std=c++20", *options, "--offload-arch=gfx942", source, "-o", program]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr[:4000]
        return program


@pytest.fixture(scope="session")
def hipcc(rocm_folder: FakeRocm, tmp_path_factory: pytest.TempPathFactory) -> Hipcc:
    """Skips without g++ and its standard library, which the host's part of the file needs."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++, whose standard library the exported file's host part needs")
    source = tmp_path_factory.mktemp("hipcc") / "probe.cpp"
    source.write_text("#include <vector>\nint main() { return 0; }\n")
    if subprocess.run(["g++", source, "-o", source.with_suffix("")], capture_output=True).returncode != 0:
        pytest.skip("g++ is there without its standard library")
    return Hipcc(rocm_folder.hipcc)
