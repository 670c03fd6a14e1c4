"""The worker's own clock: what others take of its core is not counted, and all of its work is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.cage import Cage
from kernel_scientist.sandbox.execution import Finished, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.process_handle import ProcessHandle
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

SPIN = """
__global__ void spin(unsigned* out, int steps) {
  unsigned state = 1;
  for (int step = 0; step < steps; ++step) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
  }
  out[0] = state;
}"""
STEPS = 20_000_000
CORE = max(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def code(device: Any) -> Any:
    return device.compile(SPIN, "spin", {}, {"out": np.zeros(1, np.uint32)}, [1])


@pytest.fixture
def rival() -> Iterator[None]:
    """Another process that is always busy on the timed core."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        os.sched_setaffinity(process.pid, {CORE})
        yield
        process.kill()


def spin(code: Any, cage: Cage, steps: int = STEPS) -> Finished:
    launch = KernelLaunch(0, (1, 1, 1), (1, 1, 1), 0, (Pointer(0), steps))
    with Workspace([Region("out", 4, "write")], 1) as workspace:
        outcome = run_batch(code, workspace, [launch], count=1, timeout_s=60.0, cage=cage, core=CORE)
    assert isinstance(outcome, Finished)
    return outcome


def test_a_rival_on_the_core_lengthens_the_wall_time_and_not_the_workers_own(
    device: Any, code: Any, rival: None
) -> None:
    outcome = spin(code, device.cage)
    assert outcome.processor_s is not None
    assert outcome.processor_s < 0.8 * outcome.seconds


def test_a_workers_own_time_grows_with_its_work(device: Any, code: Any) -> None:
    whole, quarter = spin(code, device.cage).processor_s, spin(code, device.cage, STEPS // 4).processor_s
    assert whole is not None
    assert quarter is not None
    assert 2.0 < whole / quarter < 8.0


def test_without_a_filter_of_system_calls_a_workers_own_time_is_not_believed(code: Any) -> None:
    assert spin(code, Cage("none", "", "asked for")).processor_s is None


def test_a_process_that_has_been_reaped_has_no_time() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        handle = ProcessHandle(process.pid)
        before = handle.processor_s()
        assert before is not None
        assert before >= 0.0
    assert handle.processor_s() is None
    handle.close()
