"""Kernels that attack their worker: each is contained, named for what it is, and dead at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.cage import Cage, select_cage
from kernel_scientist.sandbox.compilation import CodeObject
from kernel_scientist.sandbox.errors import SandboxError
from kernel_scientist.sandbox.execution import (
    BatchOutcome,
    Crashed,
    Finished,
    KernelLaunch,
    Pointer,
    Region,
    TimedOut,
)
from kernel_scientist.sandbox.worker import run_batch
from kernel_scientist.sandbox.workspace import Workspace

# `system(number, a, b, c)` makes any system call: machine code as data in an executable section, for the
# compiler refuses inline assembly.
SOURCE = """
__attribute__((section(".text.attack"), used)) const unsigned char machine_code[] = {
    0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6,
    0x48, 0x89, 0xca, 0x4d, 0x89, 0xc2, 0x0f, 0x05, 0xc3};
__device__ const volatile void* const where = machine_code;
__device__ long system(long number, long a = 0, long b = 0, long c = 0) {
  return reinterpret_cast<long (*)(long, long, long, long)>((unsigned long)where)(number, a, b, c);
}
__device__ char text[] = "DDDD/etc/passwd";
__device__ volatile int sink;
__device__ int deep(int n) { 
  volatile char frame[1024];
  frame[n % 1024] = n;
  return n == 0 ? 0 : deep(n - 1) + frame[5];
}

__global__ void attack(const float* input, float* output, int what, int number, int argument) {
  if (what == 0) system(number, argument, (long)text, 4);
  if (what == 1) for (;;) sink = 1;
  if (what == 2) { system(1, 1, (long)text, 1); for (;;) sink = 1; }
  if (what == 3) sink = deep(1000000);
  if (what == 4) sink = number / (argument + sink);
  if (what == 5) output[argument] = 1;
  if (what == 6) const_cast<float*>(input)[argument] = 1;
  if (what == 7) sink = (int)input[argument];
  if (what == 8) *(volatile int*)(long)number = 1;
  if (what == 9) *(volatile int*)0x8000000000000000ul = 1;
  if (what == 10) *(volatile int*)(long)&machine_code = 1;
  if (what == 11) for (;;) system(0, 0, (long)output, 1);
  if (what == 12) __builtin_trap();
  if (what == 13) {
    for (int i = 0; i < 4096; i++) ((volatile char*)0x5f000000)[i] = 0x7f;
    system(231, 5);
  }
  output[threadIdx.x] = 2 * input[threadIdx.x];
}
__global__ void with_fibers(const float* input, float* output, int depth) {
  __syncthreads();
  output[threadIdx.x] = deep(depth);
}
"""


def children() -> set[int]:
    """The processes that this one started and has not reaped; servers of other tests may be among them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


class Attack:
    """One attack in one cage. The buffers are 64 floats; 4 more bytes would be beyond the page."""

    def __init__(self, device: Any, cage: Cage) -> None:
        x = np.arange(64, dtype=np.float32)
        self.code: CodeObject = device.compile(SOURCE, "attack", {"input": x}, {"output": x}, [0, 0, 0])
        self.deep: CodeObject = device.compile(SOURCE, "with_fibers", {"input": x}, {"output": x}, [0])
        self.cage = cage
        self.workspace = Workspace([Region("input", 256, "read"), Region("output", 256, "write")], 2)
        for run in range(2):
            np.frombuffer(self.workspace.view(run, 0), np.float32)[:] = x

    def __call__(
        self, what: int, number: int = 0, argument: int = 0, *, timeout_s: float = 20.0
    ) -> BatchOutcome:
        return self.launch(self.code, (what, number, argument), 1, timeout_s)

    def launch(
        self, code: CodeObject, scalars: tuple[int, ...], threads: int, timeout_s: float = 20.0
    ) -> BatchOutcome:
        self.workspace.poison()
        launch = KernelLaunch(0, (1, 1, 1), (threads, 1, 1), 0, (Pointer(0), Pointer(1), *scalars))
        before = children()
        outcome = run_batch(code, self.workspace, [launch], count=2, timeout_s=timeout_s, cage=self.cage)
        assert not self.mapped_elsewhere(), "the worker is still there"
        assert children() <= before, "a process is left behind, dead or alive"
        return outcome

    def mapped_elsewhere(self) -> list[str]:
        """Processes other than this one that have the output buffers mapped."""
        inode = f" {os.fstat(self.workspace.write_fd).st_ino} "
        found = []
        for maps in Path("/proc").glob("[0-9]*/maps"):
            try:
                text = maps.read_text()
            except OSError:
                continue
            if (
                any(inode in line and "ks-write" in line for line in text.splitlines())
                and int(maps.parent.name) != os.getpid()
            ):
                found.append(maps.parent.name)
        return found

    def crash(self, *arguments: int) -> str:
        outcome = self(*arguments)
        assert isinstance(outcome, Crashed), outcome
        return outcome.reason


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "none"])
def attack(request: pytest.FixtureRequest, device: Any) -> Iterator[Attack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_SCIENTIST_CAGE", request.param)
        try:
            cage = select_cage(allow_none=request.param == "none")
        except SandboxError as error:
            pytest.skip(str(error))
    made = Attack(device, cage)
    yield made
    made.workspace.close()


def test_a_harmless_kernel_finishes_on_each_runs_own_buffers(attack: Attack) -> None:
    outcome = attack(-1)
    assert isinstance(outcome, Finished), outcome
    assert outcome.seconds > 0
    assert np.frombuffer(attack.workspace.view(1, 1), np.float32)[0] == 0
    assert np.isnan(np.frombuffer(attack.workspace.view(1, 1), np.float32)[1:]).all()
    assert attack.workspace.damaged() == []


@pytest.mark.parametrize("number", [60, 231], ids=["exit", "exit_group"])
def test_leaving_with_status_0_is_a_crash(attack: Attack, number: int) -> None:
    assert "status 0" in attack.crash(0, number, 0)


CALLS = {
    "open": 2, "close": 3, "mmap": 9, "mprotect": 10, "rt_sigaction": 13, "dup2": 33, "nanosleep": 35,
    "socket": 41,
    "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "ptrace": 101, "prctl": 157,
    "openat": 257,
    "sched_setaffinity": 203, "process_vm_writev": 311, "memfd_create": 319, "clone3": 435,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_system_calls_are_refused_and_named(attack: Attack, name: str) -> None:
    assert f"system call '{name}'" in attack.crash(0, CALLS[name], 1)


def test_calls_of_the_x32_and_other_descriptors_are_refused_too(attack: Attack) -> None:
    assert "system call" in attack.crash(0, 0x40000000 + 39)
    for descriptor in (0, 2, 3, 7):
        assert "'write'" in attack.crash(0, 1, descriptor)
    assert "'read'" in attack.crash(0, 0, 1)


def test_more_than_one_answer_is_a_crash(attack: Attack) -> None:
    assert "not its answer" in attack.crash(0, 1, 1)


def test_an_early_answer_leaves_the_outputs_as_they_are(attack: Attack) -> None:
    outcome = attack(2)
    assert isinstance(outcome, Finished)
    assert np.isnan(np.frombuffer(attack.workspace.view(0, 1), np.float32)).all()


@pytest.mark.parametrize("what", [1, 11], ids=["a loop", "waiting for a command that never comes"])
def test_a_kernel_that_never_ends_is_stopped_in_time(attack: Attack, what: int) -> None:
    start = time.monotonic()
    assert attack(what, timeout_s=0.3) == TimedOut(0.3)
    assert time.monotonic() - start < 10


def test_a_stack_overflow_is_named_with_and_without_fibers(attack: Attack) -> None:
    assert "overflowed its stack" in attack.crash(3)
    outcome = attack.launch(attack.deep, (100,), 256)
    assert isinstance(outcome, Crashed)
    assert "overflowed the stack of a thread (64 KiB) in run 0" in outcome.reason
    assert isinstance(attack.launch(attack.deep, (40,), 64), Finished)


def test_divisions_that_trap_are_named(attack: Attack) -> None:
    assert "divided" in attack.crash(4, 7, 0)
    assert "division" in attack.crash(4, -(2**31), -1)


def test_accesses_outside_of_the_buffers_are_named_to_the_byte(attack: Attack) -> None:
    assert attack.crash(5, 0, 64) == "The kernel wrote past the end of 'output' by 1 byte in run 0."
    assert (
        attack.crash(5, 0, 1_000_000)
        == "The kernel wrote past the end of 'output' by 3999745 bytes in run 0."
    )
    assert "read past the end of 'input'" in attack.crash(7, 0, 64)
    assert "wrote before the start of 'output' by 8192 bytes" in attack.crash(5, 0, -2048)
    assert "wrote to 'input' at byte 12, an input that is read-only" in attack.crash(6, 0, 3)


def test_wild_pointers_and_traps_are_named(attack: Attack) -> None:
    assert "null pointer" in attack.crash(8, 16)
    assert "no memory can have" in attack.crash(9)
    assert "its own code" in attack.crash(10)
    assert "trap" in attack.crash(12)


def test_a_forged_control_page_is_no_more_than_strange_evidence(attack: Attack) -> None:
    assert isinstance(attack(13), Crashed)
