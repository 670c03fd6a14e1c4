"""Batches on a GPU: arguments, memory, caches, times. What takes `gpu` also runs on a real device."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.cage import Cage
from kernel_scientist.sandbox.execution import Crashed, Fill, Finished, Implausible, Tampered, TimedOut
from kernel_scientist.sandbox.rocm.confinement import confine
from kernel_scientist.sandbox.rocm.hip_worker import hip

from .fakehip.machine import FakeRocm
from .gpu import FLUSH_BYTES, GUARD_BYTES, Gpu

N = 1000
X = np.arange(N, dtype=np.float32)
AXPY = """
__global__ void kernel(const float* x, float* y, int n, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""


@pytest.fixture(params=["cold", "warm"])
def gpu(request: pytest.FixtureRequest, real_device: bool) -> Gpu:
    """The machine's own device with ``--real-device``, else one that runs kernels on the CPU."""
    if not real_device:
        request.getfixturevalue("rocm")
    return Gpu(request.param)


@pytest.fixture
def cold(request: pytest.FixtureRequest, real_device: bool) -> Gpu:
    if not real_device:
        request.getfixturevalue("rocm")
    return Gpu()


def group(log: Sequence[str]) -> str:
    """The calls' names in order, each repetition once: ``hipMalloc+`` for several in a row."""
    names: list[str] = []
    for line in log:
        name = line.split()[1]
        if names and names[-1].rstrip("+") == name:
            names[-1] = f"{name}+"
        else:
            names.append(name)
    return " ".join(names)


@pytest.mark.conformance
def test_a_kernel_computes_and_is_timed(gpu: Gpu) -> None:
    y = np.empty_like(X)
    report = gpu.run(AXPY, {"x": X}, {"y": y}, (N, 2.5), grid=16, runs=3)
    assert isinstance(report.outcome, Finished), report
    assert report.outcome.device_s is not None
    assert 0 < report.outcome.device_s < report.outcome.seconds
    np.testing.assert_array_equal(y, 2.5 * X)
    assert gpu.damaged == []


TYPES = (
    "template <class I, class R, class S> __global__ void kernel(double* y, S s, I i, R r, bool b) {"
    " y[0] = s; y[1] = i; y[2] = r; y[3] = b; }"
)


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("integer", "real", "short", "values"),
    [
        ("int", "float", "short", (-7, 123456, 0.1, 1)),
        ("long long", "double", "signed char", (-100, -(2**40), 0.1, 0)),
        ("unsigned", "double", "unsigned short", (65535, 2**32 - 1, 1e300, 1)),
        ("unsigned long", "float", "long", (-(2**62), 2**63 - 1, 1e300, 1)),
    ],
)
def test_arguments_arrive_whatever_types_the_kernel_declares(
    cold: Gpu, integer: str, real: str, short: str, values: tuple[Any, ...]
) -> None:
    y = np.empty(4, dtype=np.float64)
    kernel = f"kernel<{integer}, {real}, {short}>"
    report = cold.run(TYPES, {}, {"y": y}, values, kernel=kernel, block=1)
    assert isinstance(report.outcome, Finished), report
    with np.errstate(over="ignore"):
        wanted = float(np.float32(values[2])) if real == "float" else values[2]
    assert list(y) == [float(values[0]), float(values[1]), wanted, float(values[3])]


@pytest.mark.conformance
def test_dynamic_lds_holds_what_the_launch_asks_for(cold: Gpu) -> None:
    source = """
extern __shared__ float tile[];
__global__ void kernel(const float* x, float* y, int n) {
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[n - 1 - threadIdx.x];
}
"""
    x, y = X[:256], np.empty(256, dtype=np.float32)
    report = cold.run(source, {"x": x}, {"y": y}, (256,), block=256, lds=1024)
    assert isinstance(report.outcome, Finished), report
    np.testing.assert_array_equal(y, x[::-1])


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 7),
        ("int16", -2),
        ("float32", -1.5),
        ("int32", -3),
        ("int64", -1),
        ("float64", 0.1),
        ("bfloat16", 2.0),
        ("float64", 0.0),
    ],
)
def test_scratch_starts_as_the_plan_says_in_every_run(gpu: Gpu, dtype: str, value: float) -> None:
    import ml_dtypes

    scalar = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    source = (
        "typedef unsigned char u8;\n__global__ void kernel(u8* s, u8* y, int n) {"
        " for (int i = threadIdx.x; i < n; i += blockDim.x) { y[i] = s[i]; s[i] = 0x11; } }"
    )
    nbytes = 40 * scalar.itemsize
    scratch, y = np.empty(nbytes, dtype=np.uint8), np.empty(nbytes, dtype=np.uint8)
    report = gpu.run(source, {}, {"s": scratch, "y": y}, (nbytes,), before=[Fill(0, value, dtype)], runs=3)
    assert isinstance(report.outcome, Finished), report
    np.testing.assert_array_equal(y, np.full(40, value).astype(scalar).view(np.uint8))


@pytest.mark.conformance
def test_device_globals_are_fresh_in_every_batch(cold: Gpu) -> None:
    source = "__device__ int seen = 5;\n__global__ void kernel(int* y) { y[0] = seen++; }"
    for _ in range(2):
        y = np.empty(1, dtype=np.int32)
        assert isinstance(cold.run(source, {}, {"y": y}, block=1, runs=3).outcome, Finished)
        assert y[0] == 7


@pytest.mark.conformance
@pytest.mark.parametrize("index", ["-1", "n", "n + 4000", "-4000"])
def test_writing_beside_an_output_is_seen(gpu: Gpu, index: str) -> None:
    source = (
        f"__global__ void kernel(const float* x, float* y, int n) {{ y[threadIdx.x] = 0; y[{index}] = 1; }}"
    )
    y = np.empty(64, dtype=np.float32)
    report = gpu.run(source, {"x": X}, {"y": y}, (64,))
    assert isinstance(report.outcome, Finished), report
    assert gpu.damaged == ["y"]


@pytest.mark.conformance
@pytest.mark.parametrize("index", ["0", "-1", "n"])
def test_writing_to_an_input_or_beside_it_is_seen(gpu: Gpu, index: str) -> None:
    source = f"""
__global__ void kernel(const float* x, float* y, int n) {{
  y[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 0) const_cast<float*>(x)[{index}] = 12345.0f;
}}
"""
    y = np.empty(64, dtype=np.float32)
    report = gpu.run(source, {"x": X[:64]}, {"y": y}, (64,))
    assert report.outcome == Tampered("the kernel wrote to an input, or right beside it: 'x' in run 0")


@pytest.mark.conformance
def test_a_kernel_that_does_not_end_is_stopped(cold: Gpu) -> None:
    source = "__global__ void kernel(volatile int* y) { while (y[0] != 4) {} y[1] = 1; }"
    y = np.empty(2, dtype=np.int32)
    report = cold.run(source, {}, {"y": y}, block=1, timeout_s=0.3)
    assert report.outcome == TimedOut(0.3)
    test_a_kernel_computes_and_is_timed(cold)


@pytest.mark.conformance
def test_a_kernel_that_strays_ends_the_worker_and_the_next_one_starts_clean(cold: Gpu) -> None:
    source = "__global__ void kernel(float* y, long n) { y[n] = 1; }"
    y = np.empty(64, dtype=np.float32)
    report = cold.run(source, {}, {"y": y}, (1 << 44,), block=1)
    assert isinstance(report.outcome, Crashed)
    assert re.search("Memory access fault|fault", report.outcome.reason)
    test_a_kernel_computes_and_is_timed(cold)


@pytest.mark.conformance
def test_the_worker_is_gone_when_the_batch_is_over(cold: Gpu) -> None:
    before = _children()
    test_a_kernel_computes_and_is_timed(cold)
    assert _children() == before


def _children() -> set[str]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(path.read_text().split()) if path.exists() else set()


COLD = (
    "hipInit hipGetDeviceCount hipSetDevice hipStreamCreateWithFlags hipModuleLoadData hipModuleGetFunction "
    "hipMalloc+ hipEventCreate+ "
    + "hipMemsetAsync hipEventRecord+ hipEventSynchronize "
    * 5
    + "hipMemcpy+ hipMemsetAsync hipEventRecord hipModuleLaunchKernel hipEventRecord hipEventSynchronize "
    "hipGetLastError hipEventElapsedTime "
    * 2
    + "hipMemcpy+ hipEventDestroy+ hipFree+ hipModuleUnload hipStreamDestroy exit"
)


def test_calls_come_in_the_documented_order(rocm: FakeRocm) -> None:
    gpu = Gpu()
    y = np.empty_like(X)
    code = gpu.compile(AXPY, "kernel", {"x": X}, {"y": y}, (N, 2.5))
    assert code.arch == "gfx942"
    with rocm.calls() as log:
        gpu.run(AXPY, {"x": X}, {"y": y}, (N, 2.5), grid=16)
    assert group(log) == COLD
    flush = [line for line in log if f"bytes={FLUSH_BYTES} value" in line]
    assert len(flush) == 7
    assert all(line.endswith("-> 0") for line in log if " exit " not in line)
    assert log[-1].endswith("exit blocks=0 events=0 streams=0 modules=0")
    copied = re.findall(r"hipMemcpy (\S+) bytes=(\d+)", "\n".join(log))
    assert len(copied) == 8
    assert {int(nbytes) for _, nbytes in copied} == {2 * GUARD_BYTES + 4096}


def test_scratch_is_filled_in_the_documented_way(rocm: FakeRocm) -> None:
    """By width; what repeats eight bytes is made once, before anything runs, and copied in each run."""
    gpu = Gpu()
    y = np.empty(64, dtype=np.float64)
    between = {"uint8": "hipMemsetAsync", "int16": "hipMemsetD16Async", "float32": "hipMemsetD32Async"}
    for dtype, call in {**between, "float64": "hipMemcpyAsync"}.items():
        fill = Fill(0, 0.1 if dtype == "float64" else 7, dtype)
        # One run on a busy host may look like a false clock, for which callers ask again.
        for _ in range(5):
            with rocm.calls() as log:
                outcome = gpu.run("__global__ void kernel(double* y) {}", {}, {"y": y}, runs=1, before=[fill])
            if not isinstance(outcome.outcome, Implausible):
                break
        assert isinstance(outcome.outcome, Finished), outcome
        wanted = COLD
        if dtype == "float64":
            wanted = wanted.replace("hipMalloc+ ", "hipMalloc+ hipMemcpy ")
        one, two = wanted.split("hipMemcpy+ hipMemsetAsync ")[0], wanted.split("hipEventElapsedTime ")[-1]
        run = (
            f"hipMemcpy hipMemsetAsync hipEventRecord {call} hipModuleLaunchKernel hipEventRecord "
            "hipEventSynchronize hipGetLastError hipEventElapsedTime hipMemcpy "
        )
        assert group(log) == one + run + two.removeprefix("hipMemcpy+ ")
        assert not [line for line in log if "misuse" in line]


def test_every_call_that_the_worker_makes_is_documented() -> None:
    document = (Path(__file__).parents[2] / "docs/mi300-calls.md").read_text()
    undocumented = [name for name in hip._SIGNATURES if not re.search(rf"\b{name}\b", document)]
    assert undocumented == []


def test_a_warm_run_finds_its_inputs_copied_on_the_device(rocm: FakeRocm) -> None:
    gpu = Gpu("warm")
    with rocm.calls() as log:
        gpu.run(AXPY, {"x": X}, {"y": np.empty_like(X)}, (N, 2.5), grid=16)
    assert group(log) == COLD.replace("hipMemsetAsync", "hipMemcpyAsync+")


def test_what_follows_the_launches_of_a_run_does_not_wait_for_the_next(rocm: FakeRocm) -> None:
    """Between two events nothing but the plan is queued, and nothing is waited for."""
    gpu = Gpu()
    with rocm.calls() as log:
        gpu.run(AXPY, {"x": X}, {"y": np.empty_like(X)}, (N, 2.5), grid=16, before=[Fill(1, 0, "float32")])
    between = re.findall(r"hipEventRecord (.*?) hipEventRecord", group(log))
    assert between == ["hipMemsetD32Async hipModuleLaunchKernel"] * 2


def test_where_a_cage_shows_no_device_the_worker_runs_without_and_says_so(rocm: FakeRocm) -> None:
    refused = Cage("bubblewrap", "0", "", "/bin/false")
    gpu = Gpu()
    gpu.where = replace(gpu.where, confinement=confine(refused, rocm.library))
    assert gpu.where.confinement.name == (
        "none for the worker (no device can be reached in bubblewrap); candidates are device code only"
    )
    test_a_kernel_computes_and_is_timed(gpu)


def test_the_cage_shows_the_worker_one_device_and_little_else(rocm: FakeRocm) -> None:
    gpu = Gpu()
    assert gpu.where.confinement.name.startswith("bubblewrap") or gpu.where.confinement.cage is None
    rocm.configure(devices=3)
    gpu = Gpu()
    with rocm.calls() as log:
        gpu.run(AXPY, {"x": X}, {"y": np.empty_like(X)}, (N, 2.5))
    assert [line.split(maxsplit=1)[1] for line in log if "hipGetDeviceCount" in line] == [
        "hipGetDeviceCount count=1 -> 0"
    ]
