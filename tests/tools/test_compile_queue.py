"""Compiling in the background: order, joining, failures, and keeping off the core that times kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

import pytest

from kernel_scientist.sandbox import compile_step
from kernel_scientist.sandbox.compilation import CodeObject, CompileFailure, CompileRequest
from kernel_scientist.sandbox.cores import off_core
from kernel_scientist.sandbox.device import cpu_device
from kernel_scientist.sandbox.processes import StoppedError, run
from kernel_scientist.tools.compile_queue import CompileQueue
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings
from kernel_scientist.tools.targets.cpu import CpuTarget

Maker = Callable[..., Kernel]

RIGHT = """
__global__ void filter(const float* x, float* y, int n) {
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + (i > 0 ? x[i - 1] : 0.0f);
}
"""
WAIT_S = 60.0


class Gate:
    """Work that says when it has begun and ends when it is let go."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(WAIT_S)
        return "through"


def test_jobs_run_in_order_but_the_urgent_ones_first() -> None:
    queue, gate, order = CompileQueue(threads=1), Gate(), list[str]()
    first = queue.submit("gate", gate)
    assert gate.begun.wait(WAIT_S)
    slow = [queue.submit(name, lambda name=name: order.append(name)) for name in ("a", "b")]
    urgent = queue.submit("c", lambda: order.append("c"), urgent=True)
    urgent.result(WAIT_S)
    assert order == ["c"], "an urgent job does not wait for the one that runs"
    gate.open.set()
    for future in (first, *slow):
        future.result(WAIT_S)
    assert order == ["c", "a", "b"]


def test_an_equal_job_is_joined_and_not_done_again() -> None:
    queue, gate = CompileQueue(threads=2), Gate()
    futures = [queue.submit("same", gate) for _ in range(3)]
    gate.open.set()
    assert {id(future) for future in futures} == {id(futures[0])}
    assert futures[0].result(WAIT_S) == "through"


def test_a_cancelled_job_is_not_done_and_can_be_asked_for_again() -> None:
    queue, gate, done = CompileQueue(threads=1), Gate(), list[int]()
    queue.submit("gate", gate)
    assert gate.begun.wait(WAIT_S)
    dropped = queue.submit("x", lambda: done.append(1))
    assert dropped.cancel()
    again = queue.submit("x", lambda: done.append(2))
    gate.open.set()
    again.result(WAIT_S)
    assert done == [2]
    with pytest.raises(CancelledError):
        dropped.result()


class Sleeper:
    """Work that a command does for longer than anybody waits."""

    def __init__(self, folder: Path) -> None:
        self.begun, self._folder = threading.Event(), folder

    def __call__(self) -> object:
        self.begun.set()
        return run(["/bin/sleep", "600"], cwd=self._folder, timeout_s=600.0)


def test_a_command_that_nobody_waits_for_any_more_is_killed(tmp_path: Path) -> None:
    queue = CompileQueue(threads=1)
    work = Sleeper(tmp_path)
    first, second = queue.submit("x", work), queue.submit("x", work)
    assert work.begun.wait(WAIT_S)
    queue.release("x", first)
    with pytest.raises(TimeoutError):
        first.result(0.2)
    queue.release("x", second)
    with pytest.raises(StoppedError):
        first.result(WAIT_S)
    assert queue.submit("x", lambda: 3).result(WAIT_S) == 3, "what was stopped can be asked for again"


def test_what_is_done_ahead_of_need_is_stopped_with_the_one_that_waits(tmp_path: Path) -> None:
    queue = CompileQueue(threads=1)
    work = Sleeper(tmp_path)
    ahead = queue.submit("x", work, ahead=True)
    assert queue.submit("x", work) is ahead
    assert work.begun.wait(WAIT_S)
    queue.release("x", ahead)
    with pytest.raises(StoppedError):
        ahead.result(WAIT_S)


def test_a_release_does_not_touch_a_later_job_of_the_same_key(tmp_path: Path) -> None:
    queue = CompileQueue(threads=1)
    over = queue.submit("x", lambda: 1)
    over.result(WAIT_S)
    later = queue.submit("x", Sleeper(tmp_path))
    queue.release("x", over)
    with pytest.raises(TimeoutError):
        later.result(0.2)
    queue.release("x", later)


def test_a_job_that_is_hurried_overtakes_and_waits_for_none() -> None:
    queue, gate, order = CompileQueue(threads=1), Gate(), list[str]()
    queue.submit("gate", gate)
    assert gate.begun.wait(WAIT_S)
    queue.submit("a", lambda: order.append("a"))
    hurried = queue.submit("b", lambda: order.append("b"))
    queue.hurry("b", hurried)
    hurried.result(WAIT_S)
    assert order == ["b"]
    gate.open.set()


def test_what_a_job_raises_is_raised_where_it_is_waited_for() -> None:
    def broken() -> None:
        raise OSError("no disk")

    queue = CompileQueue(threads=1)
    with pytest.raises(OSError, match="no disk"):
        queue.submit("x", broken).result(WAIT_S)
    assert queue.submit("x", lambda: 3).result(WAIT_S) == 3, "an exception is not an answer to keep"


def test_a_failed_compile_is_remembered() -> None:
    queue, calls = CompileQueue(threads=1), list[int]()
    failure = CompileFailure("cpu", "source", "no", "", "none", 0.0)

    def fails() -> CompileFailure:
        calls.append(1)
        return failure

    for _ in range(3):
        assert queue.submit("x", fails).result(WAIT_S) is failure
    assert len(calls) == 1


def test_a_process_does_not_wait_for_compiles_when_it_ends() -> None:
    code = (
        "import time; from kernel_scientist.tools.compile_queue import CompileQueue;"
        "CompileQueue().submit('x', lambda: time.sleep(600)); print('over')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (0, "over\n")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core only")
def test_off_core_keeps_the_thread_and_what_it_starts_off_that_core() -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    with off_core(core):
        seen = subprocess.run(
            [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert os.sched_getaffinity(0) == before - {core}
    assert seen.stdout.strip() == str(sorted(before - {core}))
    assert os.sched_getaffinity(0) == before


class Watched(CpuTarget):
    """The real target; it keeps where each compile may run, and whether its build was there already."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, bool]] = []
        self.cores: list[set[int]] = []
        self.changed = threading.Condition()
        compiler = self._compiler

        class Spy:
            name = compiler.name

            def compile(_, request: CompileRequest) -> CodeObject | CompileFailure:
                self.cores.append(os.sched_getaffinity(0))
                return compiler.compile(request)

        self._compiler = Spy()

    def compile(self, request: CompileRequest) -> CodeObject | CompileFailure:
        return self._noted("build", super().compile(request))

    def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
        return self._noted("report", super().report(request))

    def _noted(self, kind: str, result: object) -> object:
        with self.changed:
            self.seen.append((kind, isinstance(result, CodeObject) and result.cached))
            self.changed.notify_all()
        return result

    def wait_for(self, count: int) -> list[tuple[str, bool]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, WAIT_S), self.seen
            return list(self.seen)


def test_an_evaluation_finds_what_was_prepared(
    filter_problem: Problem, quick: JudgeSettings, make_kernel: Maker
) -> None:
    """Two values of a constant over the shapes: two builds for the device, and the gfx942 report."""
    target = Watched()
    judge = Judge(filter_problem, target, Kernel.load(filter_problem.default_kernel), settings=quick)
    kernel = make_kernel(RIGHT + "// prepared\n", **{"BLOCK = 64": 'BLOCK = "64 if n < 100 else 128"'})

    judge.prepare(kernel)
    prepared = target.wait_for(3)
    assert sorted(prepared) == [("build", False), ("build", False), ("report", False)]
    if len(os.sched_getaffinity(0)) > 1:
        assert all(cpu_device().timing_core not in cores for cores in target.cores)

    judge.evaluate(judge.baseline)
    before = len(target.seen)
    evaluation = judge.evaluate(kernel)
    assert evaluation.accepted, evaluation.message
    assert all(cached for _, cached in target.seen[before:]), target.seen[before:]


def test_preparing_a_kernel_that_cannot_be_built_says_nothing_until_it_is_evaluated(
    judge: Judge, make_kernel: Maker
) -> None:
    for code in ('#include "/etc/passwd"\n', "int broken(\n"):
        kernel = make_kernel(RIGHT + code)
        judge.prepare(kernel)
        assert not judge.evaluate(kernel).accepted


def test_a_wrong_kernel_is_found_out_without_the_gfx942_compiler(
    filter_problem: Problem, quick: JudgeSettings, make_kernel: Maker
) -> None:
    release = threading.Event()

    class Slow(CpuTarget):
        def report(self, request: CompileRequest) -> CodeObject | CompileFailure | str:
            if "// wrong" in request.source:
                assert release.wait(WAIT_S)
            return super().report(request)

    judge = Judge(filter_problem, Slow(), Kernel.load(filter_problem.default_kernel), settings=quick)
    try:
        evaluation = judge.evaluate(make_kernel(RIGHT.replace("2.0f", "3.0f") + "// wrong\n"))
    finally:
        release.set()
    assert evaluation.verdict == "wrong_result"
    assert "did not wait" in evaluation.resources_note


BOMB = """
#ifdef __AMDGCN__
template <int N> struct Spin {
  static constexpr int run() { int s = N; for (int i = 0; i < 300000; ++i) s = s * 5 % 1009; return s; }
  static constexpr int value = run() + Spin<N - 1>::value;
};
template <> struct Spin<0> { static constexpr int value = 0; };
static_assert(Spin<1000>::value > 0);
#endif
"""


def compilers() -> list[str]:
    """The command lines of compilers that this process has started, itself or through a cage."""
    parents, found = dict[int, int](), dict[int, str]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "amdgcn" in command or "gfx942" in command:
                found[int(folder.name)] = command
    ours = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= grown
    return [command for pid, command in found.items() if pid in ours - {os.getpid()}]


def test_a_gfx942_compile_ends_with_the_verdict(judge: Judge, make_kernel: Maker) -> None:
    """What only that compiler chews on must not hold up the reports of the candidates after it."""
    judge.evaluate(judge.baseline)
    wrong = make_kernel(BOMB + RIGHT.replace("2.0f", "3.0f"))
    judge.prepare(wrong)
    assert within(WAIT_S, compilers), "the bomb was never compiled"
    evaluation = judge.evaluate(wrong)
    assert evaluation.verdict == "wrong_result", evaluation.message
    assert within(compile_step.TIMEOUT_S / 3, lambda: not compilers())


def within(seconds: float, true: Callable[[], object]) -> bool:
    """Whether something comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
