"""Exported HIP files built for this machine's CPU, and a problem whose plan uses all that a plan may."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernel_scientist.sandbox.compile_step import INCLUDE
from kernel_scientist.sandbox.cpu_compiler import RUNTIME
from kernel_scientist.sandbox.object_file import ObjectFile
from kernel_scientist.sandbox.toolchain import Toolchain, find_toolchain
from kernel_scientist.tools.problem import Problem

HOST = Path(__file__).parent / "cpu_host"
FLAGS = (
    "-x", "c++", "-target", "x86_64-unknown-linux-gnu", "-std=c++20", "-O1", "-nostdinc", "-nostdinc++",
    "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fdeclspec", "-fconvergent-functions",
    "-mllvm", "-enable-tail-merge=false", "-fexcess-precision=16", "-fno-pic", "-Wall", "-Werror",
    "-Wno-c++26-extensions", "-Wno-unused-function", "-Wno-unused-const-variable",
)  # fmt: skip

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


def system_headers() -> list[str]:
    """Where the C++ compiler of this machine looks for headers, its own left out; skips without one."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++, whose standard library the exported file's host part needs")
    command = [compiler, "-v", "-E", "-x", "c++", os.devnull]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    listed = r"#include <\.\.\.> search starts here:\n(.*?)End of search"
    found = re.search(listed, asked.stderr, re.DOTALL)
    assert found is not None, asked.stderr
    folders = [line.strip() for line in found[1].splitlines()]
    if not any((Path(folder) / "vector").exists() for folder in folders):
        pytest.skip("g++ is there without its standard library")
    return [folder for folder in folders if "/gcc/" not in folder]


@dataclass(frozen=True)
class HostBuilder:
    """Compiles exported files as ordinary programs of this machine."""

    toolchain: Toolchain
    includes: tuple[str, ...]
    objects: tuple[Path, ...]

    def build(self, source: Path) -> Path:
        text = source.read_text()
        # On the CPU `__shared__` is `static`, which dynamic LDS cannot be: it becomes the linker's array.
        dynamic = re.compile(r"extern __shared__")
        local = source.with_suffix(".cpu.cpp")
        local.write_text(dynamic.sub("extern ", text))
        unit = local.with_suffix(".o")
        run([*self.toolchain.clang, *FLAGS, *self.includes, "-c", str(local), "-o", str(unit)])
        renamed = [
            f"-Wl,--defsym={name}=ks_dynamic_lds" for name in ObjectFile(unit).undefined if "staged" in name
        ]
        program = source.with_suffix("")
        run(["g++", "-no-pie", str(unit), *map(str, self.objects), *renamed,
             "-Wl,--defsym=ks_lds_end=ks_lds_begin", "-lm", "-o", str(program)])  # fmt: skip
        return program


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> HostBuilder:
    toolchain = find_toolchain("cpu")
    system = [str(toolchain.include), *system_headers()]
    # The C++ library comes before clang's own headers, which come before those of C.
    system.sort(key=lambda folder: "c++" not in folder)
    folders = [INCLUDE / "cpu", INCLUDE / "common", INCLUDE, *system]
    includes = ["-I", str(HOST), *(word for folder in folders for word in ("-isystem", str(folder)))]
    place = tmp_path_factory.mktemp("host")
    objects: list[Path] = []
    sources = {HOST / "runtime.cpp": (), RUNTIME / "fibers.cpp": (), RUNTIME / "half.cpp": ("-fno-builtin",)}
    for source, more in sources.items():
        objects.append(place / f"{source.stem}.o")
        run([*toolchain.clang, *FLAGS, *more, *includes, "-c", str(source), "-o", str(objects[-1])])
    return HostBuilder(toolchain, tuple(includes), tuple(objects))
