"""What comes of every way in which runtime, device or worker can fail, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.execution import (
    BatchOutcome,
    Crashed,
    Finished,
    Implausible,
    NotLaunched,
    TimedOut,
)

from .fakehip.machine import FakeRocm, add_smi
from .gpu import Gpu
from .leftovers import open_files, resident_mb, workers

X = np.arange(64, dtype=np.float32)
# Long enough that what is made of its time by a false clock is more than any launch takes.
SLOW = """
__global__ void kernel(const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 20000; i++) sum += x[(i * 7 + threadIdx.x) % 64] * 0.5f;
  y[threadIdx.x] = sum;
}
"""
CODES = (1, 2, 3, 4, 9, 17, 35, 98, 100, 101, 200, 201, 209, 214, 218, 302, 303, 304, 400, 401, 500, 600, 700,
701, 702,
         710, 719, 801, 999, 1052, 1053)  # fmt: skip


def attempt(gpu: Gpu, timeout_s: float = 5.0) -> BatchOutcome:
    return gpu.run(SLOW, {"x": X}, {"y": np.empty_like(X)}, timeout_s=timeout_s).outcome


@pytest.fixture
def gpu(rocm: FakeRocm) -> Iterator[Gpu]:
    """A device; whatever a test does to it, no process and no open file stays behind."""
    gpu = Gpu()
    opened = open_files()
    yield gpu
    assert workers(rocm) == []
    assert open_files() == opened


BEFORE = ("hipInit", "hipGetDeviceCount", "hipSetDevice", "hipStreamCreateWithFlags", "hipEventCreate")


@pytest.mark.parametrize("call", BEFORE)
def test_a_device_that_fails_before_the_candidate_has_a_part_in_it_is_no_verdict(
    rocm: FakeRocm, gpu: Gpu, call: str
) -> None:
    gpu.compile(SLOW, "kernel", {"x": X}, {"y": X}, ())
    rocm.configure(f"fail {call} 999")
    with pytest.raises(
        UnusableEnvironment, match=f"AMD Instinct MI300X cannot be used: {call} says hipErrorUnk"
    ):
        attempt(gpu)
    assert workers(rocm) == []


def expected(call: str, code: int) -> tuple[type[BatchOutcome], str]:
    """The outcome of a call of the run's own that fails."""
    if code == 702:
        return TimedOut, ""
    if code in (4, 100, 101, 201):
        return Crashed, "The device was lost in run 0"
    if call == "hipModuleLaunchKernel" and code not in (214, 700, 710, 719):
        return NotLaunched, "The launch was refused in run 0"
    return Crashed, "The device reported a fault in run 0"


@pytest.mark.parametrize(
    ("call", "skip", "code"),
    [
        ("hipModuleLaunchKernel", 0, 1),
        ("hipModuleLaunchKernel", 0, 9),
        ("hipModuleLaunchKernel", 0, 701),
        ("hipModuleLaunchKernel", 0, 719),
        ("hipModuleLaunchKernel", 0, 100),
        ("hipMemcpy", 0, 700),
        ("hipMemsetAsync", 5, 700),
        ("hipEventRecord", 10, 700),
        ("hipEventSynchronize", 5, 700),
        ("hipEventSynchronize", 5, 702),
        ("hipGetLastError", 0, 710),
        ("hipEventElapsedTime", 0, 600),
        ("hipMemcpy", 2, 214),
    ],
)
def test_a_call_that_fails_in_a_run(rocm: FakeRocm, gpu: Gpu, call: str, skip: int, code: int) -> None:
    rocm.configure(f"fail {call} {code} {skip}")
    outcome = attempt(gpu)
    kind, said = expected(call, code)
    assert isinstance(outcome, kind), outcome
    if isinstance(outcome, Crashed | NotLaunched):
        assert outcome.reason.startswith(said)
        assert f"{call} says hipError" in outcome.reason and f"({code})" in outcome.reason
    assert workers(rocm) == []
    rocm.configure()
    assert isinstance(attempt(gpu), Finished)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["hipModuleLaunchKernel", "hipEventSynchronize", "hipModuleLoadData", "hipMalloc"]
)
def test_every_code_of_the_calls_that_matter_has_its_outcome(rocm: FakeRocm, gpu: Gpu, call: str) -> None:
    for code in CODES:
        rocm.configure(f"fail {call} {code} {5 if call == 'hipEventSynchronize' else 0}")
        if call in ("hipModuleLoadData", "hipMalloc"):
            if code in (4, 100, 101, 201):
                with pytest.raises(UnusableEnvironment, match=rf"\({code}\)"):
                    attempt(gpu)
                continue
            kind: type[BatchOutcome] = NotLaunched
        else:
            kind = expected(call, code)[0]
        assert isinstance(attempt(gpu), kind), code
    assert workers(rocm) == []


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (
            "hipModuleLoadData",
            200,
            "did not accept the code object: hipModuleLoadData says hipErrorInvalidImage",
        ),
        ("hipModuleLoadData", 209, "hipErrorNoBinaryForGpu"),
        ("hipModuleGetFunction", 500, "hipErrorNotFound"),
        ("hipMalloc", 2, "has no room for the buffers: hipMalloc says hipErrorOutOfMemory"),
    ],
)
def test_a_code_object_that_the_device_refuses(
    rocm: FakeRocm, gpu: Gpu, call: str, code: int, said: str
) -> None:
    rocm.configure(f"fail {call} {code}")
    outcome = attempt(gpu)
    assert isinstance(outcome, NotLaunched)
    assert said in outcome.reason


@pytest.mark.parametrize("call", ["hipFree", "hipModuleUnload", "hipStreamDestroy", "hipEventDestroy"])
def test_a_fault_that_is_heard_of_after_the_last_run_counts(rocm: FakeRocm, gpu: Gpu, call: str) -> None:
    rocm.configure(f"fail {call} 700")
    outcome = attempt(gpu)
    assert isinstance(outcome, Crashed)
    assert "after its last run" in outcome.reason


@pytest.mark.parametrize("call", ["hipModuleLaunchKernel", "hipEventSynchronize", "hipMemcpy"])
def test_a_call_that_hangs_is_a_timeout(rocm: FakeRocm, gpu: Gpu, call: str) -> None:
    rocm.configure(f"hang {call} {6 if call == 'hipEventSynchronize' else 1}")
    assert attempt(gpu, 0.2) == TimedOut(0.2)
    assert workers(rocm) == []


def test_a_worker_that_hangs_at_its_end_is_killed_and_counts_as_crashed(
    rocm: FakeRocm, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_scientist.sandbox.rocm.process._EXIT_TIMEOUT_S", 0.5)
    rocm.configure("hang hipFree")
    outcome = attempt(gpu)
    assert isinstance(outcome, Crashed)
    assert "did not end" in outcome.reason
    assert workers(rocm) == []


def test_a_slow_call_is_waited_for_and_not_timed(rocm: FakeRocm, gpu: Gpu) -> None:
    rocm.configure("slow hipMemcpy 50")
    outcome = attempt(gpu)
    assert isinstance(outcome, Finished)
    assert outcome.device_s is not None
    assert outcome.seconds > 0.4 > outcome.device_s


@pytest.mark.parametrize("call", ["hipModuleLaunchKernel", "hipMemcpy"])
def test_a_device_that_is_lost_under_a_kernel_is_a_crash(rocm: FakeRocm, gpu: Gpu, call: str) -> None:
    rocm.configure(f"lose {call} 1")
    outcome = attempt(gpu)
    assert isinstance(outcome, Crashed)
    assert "The device was lost" in outcome.reason
    assert workers(rocm) == []


def test_a_worker_that_dies_is_a_crash_with_what_the_runtime_said(rocm: FakeRocm, gpu: Gpu) -> None:
    rocm.configure("die hipEventSynchronize 6")
    outcome = attempt(gpu)
    assert isinstance(outcome, Crashed)
    assert "was ended by SIGABRT" in outcome.reason


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (0.01, "by the processor's clock, and no run was nearer"),
        (100, "but it was over after"),
        (0, "say that it took 0 ms"),
        (-1, "say that it took -"),
        ("nan", "say that it took nan"),
    ],
)
def test_events_that_cannot_be_true_are_refused_with_the_evidence(
    rocm: FakeRocm, gpu: Gpu, factor: object, said: str
) -> None:
    rocm.configure(event_factor=factor)
    long = SLOW.replace("20000", "400000")
    outcome = gpu.run(long, {"x": X}, {"y": np.empty_like(X)}).outcome
    assert isinstance(outcome, Implausible), outcome
    assert said in outcome.reason


def test_the_worker_does_not_outlive_its_judge(rocm: FakeRocm, gpu: Gpu, tmp_path: Path) -> None:
    gpu.compile(SLOW, "kernel", {"x": X}, {"y": X}, ())
    rocm.configure("hang hipModuleLaunchKernel")
    code = (
        "import sys, numpy as np; sys.path.insert(0, sys.argv[1]); from gpu import Gpu\n"
        "x = np.arange(64, dtype=np.float32); Gpu().run(sys.argv[2], {'x': x}, {'y': x}, timeout_s=60.0)"
    )
    argv = [sys.executable, "-P", "-c", code, str(Path(__file__).parent), SLOW]
    with subprocess.Popen(argv, cwd=tmp_path, env={**os.environ}) as judge:
        until(lambda: any(pid != judge.pid for pid in workers(rocm)))
        judge.send_signal(signal.SIGKILL)
        judge.wait(10)
    until(lambda: workers(rocm) == [])


def until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_clock_and_temperature_are_sampled_where_a_library_tells_them(rocm: FakeRocm, gpu: Gpu) -> None:
    report = gpu.run(SLOW, {"x": X}, {"y": np.empty_like(X)})
    assert report.sensors == ({}, {})
    add_smi(rocm)
    try:
        report = gpu.run(SLOW, {"x": X}, {"y": np.empty_like(X)})
    finally:
        (rocm.root / "lib/libamd_smi.so").unlink()
    assert report.sensors == ({"clock_mhz": 2098.0, "memory_clock_mhz": 1300.0, "hotspot_c": 51.0},) * 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_500_batches_in_a_row_leave_nothing_behind(rocm: FakeRocm, gpu: Gpu) -> None:
    faults = ("", "", "fail hipModuleLaunchKernel 1", "die hipModuleLaunchKernel", "fail hipMemcpy 700 3")
    opened, used_mb = open_files(), 0.0
    with rocm.calls() as log:
        for number in range(500):
            rocm.configure(faults[number % len(faults)])
            attempt(gpu)
            if number == 50:
                used_mb = resident_mb()
    assert open_files() == opened
    assert workers(rocm) == []
    # What the log itself holds is less.
    assert resident_mb() - used_mb < 30
    assert not [line for line in log if "misuse" in line]
    ends = [line.split(maxsplit=1)[1] for line in log if " exit " in line]
    assert ends.count("exit blocks=0 events=0 streams=0 modules=0") == 200
