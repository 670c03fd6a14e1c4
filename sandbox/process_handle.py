"""A process to be killed and seen dead, by a descriptor where Linux has one (5.3), else by its number."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from pathlib import Path
from typing import final

__all__ = ["ProcessHandle", "readable"]

_POLL_S = 0.0005


@final
class ProcessHandle:
    """A running process; it need not be a child of this one. Dead is: its memory is gone, reaped or not."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd: int | None = None
        try:
            self._fd = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def stop(self) -> None:
        """Let it run no further, and not be gone either, until it is killed."""
        self._send(signal.SIGSTOP)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._fd is not None:
                signal.pidfd_send_signal(self._fd, number)
            else:
                os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> bool:
        """Whether the process was dead within `timeout_s` seconds."""
        if self._fd is not None:
            return readable(self._fd, timeout_s)
        deadline = time.monotonic() + timeout_s
        while self._alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def processor_s(self) -> float | None:
        """Processor time of all its threads so far, by the kernel's account, to the nanosecond.

        ``None`` once it has been reaped, or where the kernel does not tell.
        """
        # The clock that clock_getcpuclockid(3) names: ~pid above three bits, 2 for the scheduler's account.
        try:
            return time.clock_gettime(~self.pid << 3 | 2)
        except OSError:
            return None

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _alive(self) -> bool:
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return False
        # The state follows the name in parentheses, which may hold anything: Z is a zombie, X is dead.
        return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def readable(fd: int, timeout_s: float) -> bool:
    """Whether `fd` has something to read, or its other end is closed, within `timeout_s` seconds."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(-(-timeout_s * 1000 // 1)))
