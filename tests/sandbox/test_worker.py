"""Batches in a fresh worker: whose buffers, which runs, what is filled, and what is refused beforehand."""

from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.cage import select_cage
from kernel_scientist.sandbox.errors import SandboxError
from kernel_scientist.sandbox.execution import BatchOutcome, Fill, Finished, KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.process_handle import ProcessHandle
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

ADD = """
__device__ int calls = 0;
__global__ void add(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls++;
  if (i < n) y[i] += a * x[i] + calls;
}"""
N = 1000
REGIONS = [Region("x", 4 * N, "read"), Region("y", 4 * N, "write")]
X = np.arange(N, dtype=np.float32)


@pytest.fixture(scope="module")
def code(device: Any) -> Any:
    return device.compile(ADD, "add", {"x": X}, {"y": X}, [1.0, 1])


def launches(a: float = 2.0, n: int = N, start: float = 0.0) -> list[KernelLaunch | Fill]:
    add = KernelLaunch(0, (4, 1, 1), (256, 1, 1), 0, (Pointer(0), Pointer(1), a, n))
    return [Fill(1, start, "float32"), add, add]


def results(workspace: Workspace) -> list[Any]:
    return [np.frombuffer(workspace.view(run, 1), np.float32).copy() for run in range(workspace.runs)]


def run(
    device: Any, code: Any, workspace: Workspace, steps: list[KernelLaunch | Fill], **how: Any
) -> BatchOutcome:
    return run_batch(
        code, workspace, steps, **{"count": workspace.runs, "timeout_s": 20, "cage": device.cage, **how}
    )


def test_each_run_works_on_its_own_inputs_and_outputs(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 3) as workspace:
        for number in range(3):
            np.frombuffer(workspace.view(number, 0), np.float32)[:] = X + number
        assert isinstance(run(device, code, workspace, launches()), Finished)
        # The device's own counter lives as long as the worker: 1 and 2 in the first run, then 3 and 4.
        for number, y in enumerate(results(workspace)):
            assert (y == 4 * (X + number) + 3 + 4 * number).all()


def test_a_second_batch_starts_with_fresh_device_variables(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 1) as workspace:
        workspace.fill(0, X.tobytes())
        for _ in range(2):
            assert isinstance(run(device, code, workspace, launches()), Finished)
            assert (results(workspace)[0] == 4 * X + 3).all()


def test_only_the_runs_asked_for_are_touched(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 4) as workspace:
        workspace.fill(0, X.tobytes())
        workspace.poison()
        assert isinstance(run(device, code, workspace, launches(), first=1, count=2), Finished)
        touched = [not np.isnan(y).any() for y in results(workspace)]
        assert touched == [False, True, True, False]


def test_numbers_reach_the_kernel_in_the_type_of_its_parameter(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 1) as workspace:
        workspace.fill(0, X.tobytes())
        integer = run(device, code, workspace, launches(a=3, n=N))  # an int for a float parameter
        assert isinstance(integer, Finished)
        assert (results(workspace)[0] == 6 * X + 3).all()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", 1.5),
        ("float64", -2.25),
        ("bfloat16", 3.0),
        ("float16", 0.5),
        ("int32", -7),
        ("uint8", 200),
        ("int64", -1),
    ],
)
def test_fills_set_every_element(device: Any, code: Any, dtype: str, value: float) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with Workspace([Region("filled", 30 * kind.itemsize, "write")], 2) as workspace:
        workspace.poison()
        assert isinstance(run(device, code, workspace, [Fill(0, value, dtype)]), Finished)
        for number in range(2):
            assert (np.frombuffer(workspace.view(number, 0), kind) == kind.type(value)).all()
        assert workspace.damaged() == []


def test_the_worker_runs_on_the_core_it_is_given_and_the_caller_comes_back(device: Any, code: Any) -> None:
    before = os.sched_getaffinity(0)
    with Workspace(REGIONS, 1) as workspace:
        workspace.fill(0, X.tobytes())
        for core in sorted(before):
            assert isinstance(run(device, code, workspace, launches(), core=core), Finished)
            assert os.sched_getaffinity(0) == before


def test_no_descriptor_is_left_open(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 1) as workspace:
        run(device, code, workspace, launches())
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            run(device, code, workspace, launches())
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_writes_into_the_slack_behind_a_buffer_are_reported_by_name(device: Any) -> None:
    source = "__global__ void kernel(float* left, float* right) { right[5] = 1; left[threadIdx.x % 5] = 0; }"
    small = np.zeros(5, np.float32)
    code = device.compile(source, "kernel", {}, {"left": small, "right": small}, [])
    launch = KernelLaunch(0, (1, 1, 1), (5, 1, 1), 0, (Pointer(0), Pointer(1)))
    with Workspace([Region("left", 20, "write"), Region("right", 20, "write")], 2) as workspace:
        workspace.poison(0xA5)
        assert workspace.damaged() == []
        assert isinstance(
            run_batch(code, workspace, [launch], count=2, timeout_s=20, cage=device.cage), Finished
        )
        assert workspace.damaged() == ["right"]


def test_buffers_start_aligned_and_hold_what_the_judge_wrote() -> None:
    with Workspace(
        [Region("odd", 13, "read"), Region("empty", 0, "write"), Region("page", 4096, "write")], 2
    ) as workspace:
        workspace.fill(0, bytes(range(13)))
        assert [bytes(workspace.view(number, 0)) for number in range(2)] == [bytes(range(13))] * 2
        assert len(workspace.view(0, 1)) == 0
        for place in workspace.placements():
            assert place.address % 16 == 0
            assert 0 <= place.page_address + place.page_bytes - place.end < 16
        assert workspace.nbytes == 2 * 3 * 4096


def test_runs_outside_of_the_workspace_are_a_mistake_of_the_caller(device: Any, code: Any) -> None:
    with Workspace(REGIONS, 2) as workspace, pytest.raises(ValueError, match="not in a workspace"):
        run(device, code, workspace, launches(), first=1, count=2)


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "shared object", "outside"])
def test_a_code_object_that_is_no_image_is_refused(
    device: Any, code: Any, damage: str, tmp_path: Path
) -> None:
    image = bytearray(code.path.read_bytes())
    if damage == "empty":
        image = bytearray()
    elif damage == "text":
        image = bytearray(b"no image at all" * 100)
    elif damage == "cut":
        image = image[:5000]
    elif damage == "shared object":
        image[16] = 3
    else:  # the first segment's address: the worker program's own
        at = int.from_bytes(image[32:40], "little") + 16
        image[at : at + 8] = (0x400000).to_bytes(8, "little")
    path = tmp_path / "kernel.elf"
    path.write_bytes(image)
    with Workspace(REGIONS, 1) as workspace, pytest.raises(SandboxError, match="cannot be used"):
        run(device, dataclasses.replace(code, path=path), workspace, launches())


def test_initialisers_of_the_candidate_never_run(device: Any) -> None:
    source = """
    __device__ int forever() { volatile int n = 1; while (n) n = 1; return 0; }
    __device__ int variable = forever();
    __global__ void kernel(int* out) { out[threadIdx.x] = 1 + variable; }"""
    out = np.zeros(64, np.int32)
    device.run(source, outputs={"out": out}, timeout_s=5.0)
    assert (out == 1).all()


JUDGE = """
import os, sys
from pathlib import Path
from kernel_scientist.sandbox.cage import select_cage
from kernel_scientist.sandbox.compilation import CodeObject, CompiledKernel, EntryPoint, BufferArgument
from kernel_scientist.sandbox.execution import KernelLaunch, Pointer, Region
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

def below(pid):
    children = " ".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")).split()
    return [one for child in children for one in (child, *below(child))]

def tell():
    print(*below(os.getpid()), flush=True)

entry = EntryPoint("kernel", (BufferArgument("out", "int32", True),), 1)
code = CodeObject("cpu", Path(sys.argv[1]), "", (CompiledKernel(entry, "kernel", 0, False),), "", "", 0, True)
with Workspace([Region("out", 4096, "write")], 1) as workspace:
    workspace.poison(0)
    launch = KernelLaunch(0, (1, 1, 1), (1, 1, 1), 0, (Pointer(0),))
    cage = select_cage(allow_none=True)
    run_batch(code, workspace, [launch], count=1, timeout_s=60, cage=cage, when_ready=tell)
"""


def alive(pid: str) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return (Path("/proc") / pid / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("name", ["bubblewrap", "landlock", "none"])
def test_a_worker_does_not_outlive_a_judge_that_is_killed(device: Any, name: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CAGE", name)
    try:
        select_cage(allow_none=name == "none")
    except SandboxError as error:
        pytest.skip(str(error))
    source = "__global__ void kernel(int* out) { for (;;) *(volatile int*)out = 1; }"
    code = device.compile(source, "kernel", {}, {"out": np.zeros(1024, np.int32)}, [])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", JUDGE, str(code.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as judge:
        assert judge.stdout is not None
        workers = judge.stdout.readline().split()
        assert workers and all(map(alive, workers))
        judge.kill()
    assert wait_until(lambda: not any(map(alive, workers))), workers


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_a_process_is_killed_and_seen_dead_before_it_is_reaped(
    has_descriptors: bool, monkeypatch: Any
) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not in this kernel")

    if not has_descriptors:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    with subprocess.Popen(["sleep", "60"]) as child:
        handle = ProcessHandle(child.pid)
        assert not handle.wait(0.05)
        handle.kill()
        assert handle.wait(20)
        assert child.wait() == -9
        handle.kill()
        handle.close()
