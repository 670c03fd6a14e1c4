"""Run a batch on a GPU in a fresh worker process, which is gone with its process group before this returns.

Covered: every batch has a new process, so a new context and fresh device globals; inputs are rewritten,
outputs and guards poisoned before each run, by the worker and from the judge's copies; a hung, faulting or
lost device ends the worker and leaves nothing of it. The worker's program is ours: its times and its word on
changed inputs are believed as far as the caller's clock allows. Not covered: what device code can do to the
memory that the runtime shares with the device, beyond the check of times; see clocks.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, final

from ..compilation import CodeObject
from ..errors import SandboxError
from ..execution import BatchOutcome, Crashed, Fill, Finished, Implausible, KernelLaunch, Tampered, TimedOut
from ..process_handle import ProcessHandle, readable
from ..workspace import Workspace
from .batch_plan import CachePolicy, Descriptors, write_plan
from .clocks import Times, contradiction
from .command import worker_argv, worker_environment
from .confinement import Confinement
from .discovery import RocmDevice
from .failures import after_go, before_go, death

__all__ = ["BatchReport", "DeviceWorker", "run_batch"]

# A node with eight devices takes seconds to start its runtime.
_READY_TIMEOUT_S = 120.0
_EXIT_TIMEOUT_S = 15.0
_KILL_TIMEOUT_S = 30.0
_SAID_BYTES = 4000
# What a run may take beside its kernels before the worker counts as hung: copies to and from the device at a
# rate that any link has, the writing of the flush buffer, and calls.
_LINK_BYTES_PER_S = 1e9
_FLUSH_BYTES_PER_S = 50e9
_CALLS_S = 0.02


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What came of a batch, and the device's clock and temperatures before and after it."""

    outcome: BatchOutcome
    sensors: tuple[dict[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceWorker:
    """Where and how batches run."""

    library: Path
    device: RocmDevice
    confinement: Confinement
    policy: CachePolicy


def run_batch(
    where: DeviceWorker,
    code: CodeObject,
    workspace: Workspace,
    launches: Sequence[KernelLaunch | Fill],
    *,
    count: int,
    timeout_s: float,
) -> BatchReport:
    """Run `launches` in order on each of the first `count` runs' own regions, in one new process.

    `timeout_s` is for the kernels; what putting their buffers into place may take is added. Raises
    `DeviceLost` when the device fails before the candidate has any part in it.
    """
    if not 0 < count <= workspace.runs:
        raise ValueError(f"{count} runs are not in a workspace of {workspace.runs}")
    limit_s = timeout_s + count * _beside_s(workspace, where.policy)
    with _Process(where) as process:
        fds = process.descriptors(code, workspace)
        process.start(
            write_plan(
                code,
                code.path.stat().st_size,
                workspace,
                launches,
                fds,
                count=count,
                policy=where.policy,
                pci=where.device.pci,
            ),
            fds,
        )
        ready = process.receive(_READY_TIMEOUT_S)
        if ready is None or "ready" not in ready:
            return BatchReport(before_go(ready, process.end(patient=bool(ready)), where.device))
        seconds, answer = process.go(limit_s)
        if answer == {}:
            return BatchReport(TimedOut(timeout_s))
        end = process.end() if answer is not None and "done" in answer else process.end(patient=False)
    if answer is None:
        return BatchReport(death(end))
    if "done" not in answer:
        return BatchReport(after_go(answer["failed"], timeout_s))
    return _conclude(ready["ready"], answer["done"], seconds, len(launches), end)


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How the process ended, and its last words.

    `status` is negative for a signal, and ``None`` where the process had to be killed.
    """

    status: int | None
    said: str


def _conclude(
    ready: dict[str, Any], done: dict[str, Any], seconds: float, steps: int, end: WorkerEnd
) -> BatchReport:
    sensors = tuple(done["sensors"])
    if end.status != 0:
        how = "did not end" if end.status is None else f"ended with status {end.status}"
        return BatchReport(Crashed(f"The worker {how} after its last run{_quoted(end.said)}."), sensors)
    if done["changed"]:
        names = ", ".join(f"'{name}' in run {run}" for name, run in done["changed"].items())
        return BatchReport(Tampered(f"the kernel wrote to an input, or right beside it: {names}"), sensors)
    times = Times(
        tuple(done["event_ms"]),
        _milliseconds(done["wall_ns"]),
        _milliseconds(done["waited_ns"]),
        _milliseconds(ready["empty_ns"]),
    )
    fault = contradiction(times, steps=steps, caller_s=seconds)
    if fault is not None:
        return BatchReport(Implausible(fault), sensors)
    return BatchReport(Finished(seconds, device_s=times.device_s), sensors)


def _milliseconds(nanoseconds: Sequence[int]) -> tuple[float, ...]:
    return tuple(one / 1e6 for one in nanoseconds)


def _quoted(said: str) -> str:
    return f" ({said})" if said else ""


def _beside_s(workspace: Workspace, policy: CachePolicy) -> float:
    moved = 3 * workspace.nbytes / workspace.runs
    return moved / _LINK_BYTES_PER_S + policy.flush_bytes / _FLUSH_BYTES_PER_S + _CALLS_S


@final
class _Process:
    """The worker process and what is shared with it; on exit its group is killed and everything closed."""

    def __init__(self, where: DeviceWorker) -> None:
        self._where = where
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace: ProcessHandle | None = None
        self._fds: list[int] = []
        self._answers = b""
        try:
            self._plan, self._code, self._said = map(self._memory, ("ks-plan", "ks-code", "ks-said"))
            self._command_end, self._command = self._pipe()
            self._reply, self._reply_end = self._pipe()
            self._info, self._info_end = self._pipe()
        except BaseException:
            self._close()
            raise

    def descriptors(self, code: CodeObject, workspace: Workspace) -> Descriptors:
        _write_all(self._code, code.path.read_bytes())
        return Descriptors(
            self._command_end, self._reply_end, self._code, workspace.read_fd, workspace.write_fd
        )

    def start(self, plan: bytes, shared: Descriptors) -> None:
        _write_all(self._plan, plan)
        os.lseek(self._plan, 0, os.SEEK_SET)
        library = self._where.library
        argv = worker_argv(["batch", str(library), str(self._plan)])
        environment = worker_environment(library, self._where.device.token)
        try:
            self._process = subprocess.Popen(
                self._where.confinement.command(argv, library, environment, self._info_end),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                cwd="/",
                env=environment,
                start_new_session=True,
                pass_fds=(
                    self._plan,
                    self._info_end,
                    shared.command,
                    shared.reply,
                    shared.code,
                    shared.read,
                    shared.write,
                ),
            )
        except OSError as error:
            raise SandboxError(
                f"The device worker cannot be started ({error.strerror}); run `kernel-scientist doctor`."
            ) from error
        for fd in (self._command_end, self._reply_end, self._info_end):
            self._fds.remove(fd)
            os.close(fd)
        if self._where.confinement.cage is not None:
            self._find_namespace()

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next answer; ``None`` when the worker ends without one, {} when it takes longer."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._answers:
            if not readable(self._reply, max(0.0, deadline - time.monotonic())):
                return {}
            part = os.read(self._reply, 1 << 16)
            if not part:
                return None
            self._answers += part
        line, _, self._answers = self._answers.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def go(self, timeout_s: float) -> tuple[float, dict[str, Any] | None]:
        """Start the runs; seconds by this process's clock until the answer, and the answer."""
        start = time.perf_counter()
        with contextlib.suppress(BrokenPipeError):
            os.write(self._command, b"G")
        answer = self.receive(timeout_s)
        return time.perf_counter() - start, answer

    def end(self, *, patient: bool = True) -> WorkerEnd:
        """Wait for the worker's own end, a while, then kill its group; how it went."""
        assert self._process is not None
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_EXIT_TIMEOUT_S if patient else 2.0)
        self._kill()
        # bubblewrap passes its child's end on the way a shell does.
        if status is not None and status > 128 and self._where.confinement.cage is not None:
            status = 128 - status
        return WorkerEnd(status, self._last_words())

    def _find_namespace(self) -> None:
        """The cage's first process, with which everything in it dies; none when the cage was not made."""
        said = b""
        while b"}" not in said and readable(self._info, _READY_TIMEOUT_S):
            part = os.read(self._info, 4096)
            if not part:
                return
            said += part
        with contextlib.suppress(ProcessLookupError):
            self._namespace = ProcessHandle(json.loads(said)["child-pid"])

    def __enter__(self) -> _Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
        self._close()

    def _kill(self) -> None:
        if self._process is None:
            return
        # The group, for what a runtime may have started; its leader's id is not reused before it is reaped.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        dead = True
        if self._namespace is not None:
            self._namespace.kill()
            dead = self._namespace.wait(_KILL_TIMEOUT_S)
            self._namespace.close()
            self._namespace = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_TIMEOUT_S)
        if not dead or self._process.returncode is None:
            raise SandboxError(
                f"The device worker (process {self._process.pid}) does not die: the driver holds it; "
                f"{self._where.device.title} may need a reset."
            )

    def _last_words(self) -> str:
        size = os.fstat(self._said).st_size
        said = os.pread(self._said, _SAID_BYTES, max(0, size - _SAID_BYTES)).decode(errors="replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return " / ".join(lines[-3:])[:600]

    def _memory(self, name: str) -> int:
        self._fds.append(os.memfd_create(name, os.MFD_CLOEXEC))
        return self._fds[-1]

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        self._fds += ends
        return ends

    def _close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
