"""Workers that are started ahead: they wait without a part in anything, and none is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kernel_scientist.sandbox.errors import SandboxError
from kernel_scientist.sandbox.execution import BatchOutcome, Crashed, Finished
from kernel_scientist.sandbox.rocm.confinement import Confinement
from kernel_scientist.sandbox.rocm.supply import WorkerSupply

from .fakehip.machine import FakeRocm
from .gpu import Gpu
from .leftovers import workers

X = np.arange(64, dtype=np.float32)
KERNEL = "__global__ void kernel(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }"
WAITED = ["hipInit", "hipGetDeviceCount", "exit"]


@pytest.fixture
def gpu(rocm: FakeRocm, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """Every start counts as one that takes long."""
    monkeypatch.setattr("kernel_scientist.sandbox.rocm.supply._WORTH_S", 0.0)
    gpu = Gpu()
    # In a cage every worker has the same process id, by which the log is read here.
    gpu.where = replace(gpu.where, confinement=Confinement(None, "a test"))
    return gpu


def batch(gpu: Gpu, supply: WorkerSupply) -> BatchOutcome:
    y = np.zeros_like(X)
    outcome = gpu.run(KERNEL, {"x": X}, {"y": y}, supply=supply).outcome
    if isinstance(outcome, Finished):
        np.testing.assert_array_equal(y, 2 * X)
    return outcome


def by_process(log: list[str]) -> dict[str, list[str]]:
    """The calls of each process, in the order in which the processes said something first."""
    calls: dict[str, list[str]] = {}
    for line in log:
        pid, call = line.split()[:2]
        calls.setdefault(pid, []).append(call)
    return calls


def starts_beside_work(log: list[str]) -> Iterator[str]:
    """Processes that start while another one has a device."""
    active: set[str] = set()
    for line in log:
        pid, call = line.split()[:2]
        if call == "hipSetDevice":
            active.add(pid)
        elif call == "exit":
            active.discard(pid)
        elif call == "hipInit" and active:
            yield line


def test_each_batch_has_a_fresh_process_and_nothing_starts_while_one_works(rocm: FakeRocm, gpu: Gpu) -> None:
    gpu.compile(KERNEL, "kernel", {"x": X}, {"y": X}, ())
    with rocm.calls() as log:
        with WorkerSupply(gpu.where) as supply:
            for _ in range(5):
                assert isinstance(batch(gpu, supply), Finished)
        assert workers(rocm) == []
    calls = by_process(log)
    # Groups of 1, 2 and 4, of which two were not needed.
    assert sum("hipSetDevice" in made for made in calls.values()) == 5
    assert len(calls) == 7
    assert all(made.count("hipModuleLoadData") <= 1 for made in calls.values())
    assert all(made[:2] == WAITED[:2] for made in calls.values())
    assert not [made for made in calls.values() if "hipSetDevice" not in made and made != WAITED[:2]]
    assert not list(starts_beside_work(log))
    assert not [line for line in log if "misuse" in line]


def test_after_a_fault_those_that_wait_are_dropped(rocm: FakeRocm, gpu: Gpu) -> None:
    with WorkerSupply(gpu.where) as supply:
        assert isinstance(batch(gpu, supply), Finished)
        assert isinstance(batch(gpu, supply), Finished)
        assert len(workers(rocm)) > 0  # one of the group of two waits
        rocm.configure("fail hipEventSynchronize 700 5")
        # What waits has been configured already, and is right; what starts after it is not.
        assert isinstance(batch(gpu, supply), Finished)
        assert isinstance(batch(gpu, supply), Crashed)
        assert workers(rocm) == []
        rocm.configure()
        assert isinstance(batch(gpu, supply), Finished)


def test_quick_starts_are_made_when_they_are_needed(
    rocm: FakeRocm, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_scientist.sandbox.rocm.supply._WORTH_S", 60.0)
    with rocm.calls() as log, WorkerSupply(gpu.where) as supply:
        for _ in range(3):
            assert isinstance(batch(gpu, supply), Finished)
            assert workers(rocm) == []
    assert all("hipSetDevice" in made for made in by_process(log).values() if "hipInit" in made)


def test_a_worker_that_ends_while_it_waits_is_a_fault_of_the_machine(rocm: FakeRocm, gpu: Gpu) -> None:
    gpu.compile(KERNEL, "kernel", {"x": X}, {"y": X}, ())
    with WorkerSupply(gpu.where) as supply:
        for _ in range(2):
            assert isinstance(batch(gpu, supply), Finished)
        for pid in workers(rocm):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="before it was ready"):
            batch(gpu, supply)
    assert workers(rocm) == []
