"""The process beside a GPU, as the judge holds it: started, given its batch, and ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, final

from ..compilation import CodeObject
from ..errors import SandboxError
from ..process_handle import ProcessHandle, readable
from ..shared_files import SharedFiles
from ..workspace import Workspace
from .batch_plan import CachePolicy
from .command import worker_argv, worker_environment
from .confinement import Confinement
from .discovery import RocmDevice

__all__ = ["READY_TIMEOUT_S", "DeviceWorker", "WorkerEnd", "WorkerProcess"]

READY_TIMEOUT_S = 120.0
"""A node with eight devices takes seconds to start its runtime."""

_EXIT_TIMEOUT_S = 15.0
_KILL_TIMEOUT_S = 30.0
_SAID_BYTES = 4000


@dataclass(frozen=True, slots=True)
class DeviceWorker:
    """Where and how batches run."""

    library: Path
    device: RocmDevice
    confinement: Confinement
    policy: CachePolicy


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How the process ended, and its last words.

    `status` is negative for a signal, and ``None`` where the process had to be killed.
    """

    status: int | None
    said: str


@final
class WorkerProcess:
    """A worker process, started at once, and what is shared with it.

    On exit its group is killed and everything closed. It does nothing on a device before it has a plan.
    """

    def __init__(self, where: DeviceWorker) -> None:
        self._where = where
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace: ProcessHandle | None = None
        self._files = SharedFiles()
        self._answers = b""
        self._asked = False
        self._first: dict[str, Any] | None = None
        self._channel, self._channel_end = socket.socketpair()
        try:
            self._said = self._files.memory("ks-said")
            self._reply, self._reply_end = self._files.pipe()
            self._info, self._info_end = self._files.pipe()
            self._start()
        except BaseException:
            self._close()
            raise

    def _start(self) -> None:
        library = self._where.library
        argv = worker_argv(["batch", str(library), str(self._channel_end.fileno()), str(self._reply_end)])
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
                pass_fds=(self._channel_end.fileno(), self._reply_end, self._info_end),
            )
        except OSError as error:
            raise SandboxError(
                f"The device worker cannot be started ({error.strerror}); run `kernel-scientist doctor`."
            ) from error
        self._channel_end.close()
        for fd in (self._reply_end, self._info_end):
            self._files.close_one(fd)

    def started(self) -> dict[str, Any] | None:
        """What it says when its runtime has started, as `receive` has it."""
        if not self._asked:
            self._asked = True
            if self._where.confinement.cage is not None:
                self._find_namespace()
            self._first = self.receive(READY_TIMEOUT_S)
        return self._first

    def assign(self, plan: bytes, code: CodeObject, workspace: Workspace) -> None:
        """Give it its batch."""
        plan_file, code_file = self._files.memory("ks-plan"), self._files.memory("ks-code")
        _write_all(plan_file, plan)
        os.lseek(plan_file, 0, os.SEEK_SET)
        _write_all(code_file, code.path.read_bytes())
        files = [plan_file, code_file, workspace.read_fd, workspace.write_fd]
        # Where it is gone, the missing answer tells.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._channel, [b"P"], files)

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
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channel.send(b"G")
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
        while b"}" not in said and readable(self._info, READY_TIMEOUT_S):
            part = os.read(self._info, 4096)
            if not part:
                return
            said += part
        with contextlib.suppress(ProcessLookupError):
            self._namespace = ProcessHandle(json.loads(said)["child-pid"])

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

    def close(self) -> None:
        """Kill it, if it lives, and close everything."""
        try:
            self._kill()
        finally:
            self._close()

    def _close(self) -> None:
        for end in (self._channel, self._channel_end):
            end.close()
        self._files.close()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
