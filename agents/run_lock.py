"""The lock of a run: one process at a time works on it, and a killed one leaves it free."""

from __future__ import annotations

import contextlib
from typing import final

from kernel_scientist.sandbox.errors import SandboxError, UsageError
from kernel_scientist.sandbox.files import FileLock, explained

from .run import LOCK_FILE, Run

__all__ = ["RunLock"]

_PATIENCE_S = 1.0  # a reader that looks whether the lock is free holds it for a moment


@final
class RunLock:
    """Holds a run. Raises `UsageError` naming the process that has it."""

    def __init__(self, run: Run) -> None:
        self._released = False
        self._path = run.path / LOCK_FILE
        self._lock = FileLock(self._path, timeout_s=_PATIENCE_S, purpose="(running this session)")
        with explained("lock the run", run.path):
            try:
                self._lock.__enter__()
            except SandboxError:
                raise UsageError(
                    f"The run {run.id} is at work in {self._holder()}; wait until it ends, or stop it."
                ) from None

    def release(self, *, ended: bool) -> None:
        """Give the run back. The file stays unless the run has `ended`: it says that the process is gone.

        A second call does nothing.
        """
        if self._released:
            return
        self._released = True
        if ended:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._lock.__exit__(None, None, None)

    def _holder(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            words = self._path.read_text().split()
            if words[:1] == ["process"] and words[1].isdigit():
                return f"process {words[1]}"
        return "another process"
