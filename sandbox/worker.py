"""Run a batch of launches in a fresh caged worker, and have it dead before anyone reads the buffers.

Covered: no instruction of the code object runs before "go"; both clocks are out of the worker's reach and
are read only once it has been stopped for good, so that an early "done" gains nothing; the worker is reaped,
under bubblewrap with every process of its namespace, before this returns. Processor time counts all the
work there can be, for the system-call filter leaves a worker no thread and no child; without the filter
it is not reported. Not covered: what the worker says, which is why nothing but its death and the time is
reported.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import final

from .cage import Cage
from .code_image import CodeImage, load_image
from .compilation import CodeObject
from .cores import off_core
from .crash_report import describe_crash
from .errors import SandboxError
from .execution import BatchOutcome, Crashed, Fill, Finished, KernelLaunch, TimedOut
from .process_handle import ProcessHandle, readable
from .shared_files import SharedFiles
from .worker_plan import CONTROL_BYTES, Control, Descriptors, pack_plan
from .worker_program import worker_program
from .workspace import Workspace

__all__ = ["run_batch"]

_READY_TIMEOUT_S = 60.0
_REAP_TIMEOUT_S = 30.0
_STAGES = (
    "starting",
    "mapping memory",
    "applying landlock",
    "setting limits",
    "applying seccomp",
    "getting ready",
)


def run_batch(
    code: CodeObject,
    workspace: Workspace,
    launches: Sequence[KernelLaunch | Fill],
    *,
    first: int = 0,
    count: int,
    timeout_s: float,
    cage: Cage,
    core: int | None = None,
    reverse_fibers: bool = False,
    when_ready: Callable[[], object] | None = None,
) -> BatchOutcome:
    """Run `launches` in order on each of `count` runs' own regions, from run `first` on, in one new process.

    The worker is pinned to `core` and the calling thread kept off it. `when_ready` is called before the
    worker is told to go, so that several can go at once. Raises `SandboxError` when the worker
    fails before the kernel could have done anything.
    """
    if not 0 <= first < first + count <= workspace.runs:
        raise ValueError(f"runs {first} to {first + count - 1} are not in a workspace of {workspace.runs}")
    image = load_image(code.path)
    with off_core(core), _Worker(cage) as worker:
        plan = pack_plan(
            image,
            code.kernels,
            workspace,
            launches,
            worker.descriptors(image, workspace),
            first=first,
            count=count,
            core=core,
            # A backstop for a judge that dies: the worker's own processor time, from its start.
            cpu_seconds=math.ceil(timeout_s) + 2,
            reverse_fibers=reverse_fibers,
            require_seccomp=cage.name != "none",
            require_landlock=cage.name == "landlock+seccomp",
        )
        worker.start(plan, image, workspace)
        if when_ready is not None:
            when_ready()
        seconds, processor_s, said = worker.go(timeout_s)
        status = worker.reap()
        control = worker.control()
    if said is None:
        return TimedOut(timeout_s)
    if said == b"D":
        return Finished(seconds, processor_s if cage.name != "none" else None)
    if said:
        return Crashed(f"The worker sent {len(said)} bytes that are not its answer.")
    return Crashed(describe_crash(control, status, list(workspace.placements(first, count)), len(launches)))


@final
class _Worker:
    """One worker process and what is shared with it; on exit everything is killed, reaped and closed."""

    def __init__(self, cage: Cage) -> None:
        self._cage = cage
        self._program = worker_program()
        self._files = SharedFiles()
        self._process: subprocess.Popen[bytes] | None = None
        self._target: ProcessHandle | None = None
        try:
            self._plan = self._files.memory("ks-plan")
            self._control = self._files.memory("ks-control")
            os.ftruncate(self._control, CONTROL_BYTES)
            self._messages = self._files.memory("ks-messages")
            self._command_end, self._command = self._files.pipe()
            self._reply, self._reply_end = self._files.pipe()
            self._info, self._info_end = self._files.pipe()
        except BaseException:
            self._close()
            raise

    def descriptors(self, image: CodeImage, workspace: Workspace) -> Descriptors:
        return Descriptors(
            self._command_end, self._reply_end, self._control, image.fd, workspace.read_fd, workspace.write_fd
        )

    def start(self, plan: bytes, image: CodeImage, workspace: Workspace) -> None:
        """Spawn the worker and wait until it has mapped everything and locked itself up."""
        os.write(self._plan, plan)
        own = (self._plan, self._control, self._command_end, self._reply_end, self._info_end)
        arguments = (str(self._plan), str(len(plan)))
        try:
            self._process = subprocess.Popen(
                self._cage.worker_command(self._program, arguments, self._info_end),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
                cwd="/",
                env={},
                start_new_session=True,
                pass_fds=(*own, image.fd, workspace.read_fd, workspace.write_fd),
            )
        except OSError as error:
            raise SandboxError(
                f"The worker cannot be started ({error.strerror}); run `kernel-scientist doctor`."
            ) from error
        for fd in (self._command_end, self._reply_end, self._info_end):
            self._files.close_one(fd)
        if self._receive(_READY_TIMEOUT_S) != b"R":
            self._fail()
        self._target = ProcessHandle(self._worker_pid())

    def go(self, timeout_s: float) -> tuple[float, float | None, bytes | None]:
        """Start the runs; seconds until the worker is stopped, its processor time in them, what it said.

        ``None`` is a processor time that the kernel does not tell, and a worker that said nothing.
        """
        assert self._target is not None
        before = self._target.processor_s()
        start = time.perf_counter()
        os.write(self._command, b"G")
        said = self._receive(timeout_s)
        # Stopped first: killed, it could be gone before its clock is read.
        self._target.stop()
        seconds = time.perf_counter() - start
        after = self._target.processor_s()
        self._target.kill()
        if before is None or after is None or after <= before:
            return seconds, None, said
        # The cost of being stopped, as far as it fell before the second look, counts with the runs.
        return seconds, min(after - before, seconds), said

    def reap(self) -> int:
        """Wait for the end of the (killed) worker and return its status, negative for a signal."""
        assert self._process is not None
        assert self._target is not None
        spawned = ProcessHandle(self._process.pid)
        dead = self._target.wait(_REAP_TIMEOUT_S) and spawned.wait(_REAP_TIMEOUT_S)
        spawned.close()
        if not dead:
            raise SandboxError(
                f"The worker (process {self._target.pid}) does not die; its outputs are not used."
            )
        status = self._process.wait()
        # bubblewrap passes its child's end on the way a shell does.
        return 128 - status if self._cage.program and status > 128 else status

    def control(self) -> Control:
        return Control.unpack(os.pread(self._control, CONTROL_BYTES, 0))

    def __enter__(self) -> _Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            if self._target is not None:
                self._target.kill()
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_TIMEOUT_S)
        self._close()

    def _worker_pid(self) -> int:
        """The worker's own process id; bubblewrap has reported it before it let the worker run."""
        assert self._process is not None
        if self._cage.program is None:
            return self._process.pid
        return int(json.loads(os.read(self._info, 4096))["child-pid"])

    def _receive(self, timeout_s: float) -> bytes | None:
        return os.read(self._reply, 64) if readable(self._reply, timeout_s) else None

    def _fail(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        control = self.control()
        said = os.pread(self._messages, 2000, 0).decode(errors="replace").strip()
        stage = _STAGES[control.stage] if control.stage < len(_STAGES) else "running"
        why = said or (
            os.strerror(control.error) if control.error else f"exit status {self._process.returncode}"
        )
        raise SandboxError(f"The worker failed while {stage} in the {self._cage.name} sandbox: {why}.")

    def _close(self) -> None:
        if self._target is not None:
            self._target.close()
        self._files.close()
