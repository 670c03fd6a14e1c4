"""Run a command to its end, or to a limit, and leave nothing of it behind.

Covered: time, address space, CPU time, file size and output are bounded; the whole process group is killed at
the end. Not covered: a process that leaves its group; only a cage's process namespace holds that.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from .errors import UnusableEnvironment

__all__ = ["Completed", "Limits", "StoppedError", "run", "stoppable"]

_SHELL = "/bin/sh"
_POLL_S = 0.05
_KILOBYTE = 1024
_ULIMIT_FILE_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use; ``None`` leaves the caller's own limit. `output_bytes` holds per stream."""

    memory_bytes: int | None = None
    cpu_s: int | None = None
    file_bytes: int | None = None
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. `returncode` is negative for a signal; output beyond the limit is dropped."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float


class StoppedError(Exception):
    """The command was killed because nobody wants its result any more."""


_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


@contextlib.contextmanager
def stoppable(stop: threading.Event) -> Generator[None]:
    """Commands that this thread runs meanwhile are killed, and raise `StoppedError`, once `stop` is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    input: bytes | None = None,
    limits: Limits | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Completed:
    """Run `argv` in its own process group; `env` is the whole environment (default: empty).

    Raises `UnusableEnvironment` when the program cannot be started, `StoppedError` as `stoppable` says.
    """
    limits = limits or Limits()
    stop = _stop.get() or threading.Event()
    if stop.is_set():
        raise StoppedError
    start = time.monotonic()
    try:
        process = subprocess.Popen(
            _limited(argv, limits),
            cwd=cwd,
            env=dict(env or {}),
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as error:
        raise UnusableEnvironment(f"Cannot start {argv[0]}: {error.strerror}.") from error
    transfer = _Transfer(process, input or b"", limits.output_bytes)
    try:
        timed_out = not transfer.until(start + timeout_s, stop)
    finally:
        # Before the leader is reaped its id cannot be another group's, so this kills nobody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        transfer.close()
    if stop.is_set():
        raise StoppedError
    seconds = time.monotonic() - start
    stdout, stderr = transfer.output("stdout"), transfer.output("stderr")
    return Completed(process.returncode, stdout, stderr, timed_out, seconds)


def _limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """`argv` behind a shell that sets the limits: Python between fork and exec is unsafe with threads."""
    settings = [
        f"ulimit -{flag} {value}"
        for flag, value in (
            ("c", 0),
            ("v", None if limits.memory_bytes is None else limits.memory_bytes // _KILOBYTE),
            ("t", limits.cpu_s),
            ("f", None if limits.file_bytes is None else limits.file_bytes // _ULIMIT_FILE_BLOCK),
        )
        if value is not None
    ]
    return [_SHELL, "-c", f'{" && ".join(settings)} && exec "$@"', "sh", *argv]


class _Transfer:
    """Moves a process's input and output without blocking on either."""

    def __init__(self, process: subprocess.Popen[bytes], input: bytes, limit: int) -> None:
        self._process = process
        self._pending = memoryview(input)
        self._limit = limit
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._selector = selectors.DefaultSelector()
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")

    def until(self, deadline: float, stop: threading.Event) -> bool:
        """Work until the process has exited (true), or `deadline` has passed or `stop` is set (false)."""
        while not stop.is_set():
            # Asked before reading, so that what the process wrote last is still read below.
            exited = self._exited()
            left = deadline - time.monotonic()
            if self._selector.get_map():
                ready = self._selector.select(0 if exited else max(0.0, min(left, _POLL_S)))
                for key, _ in ready:
                    self._move(key)
                if exited and (not ready or left <= 0 or self._full()):
                    return True
            elif not exited:
                time.sleep(max(0.0, min(left, 0.001)))
            else:
                return True
            if left <= 0:
                return exited
        return False

    def output(self, name: str) -> bytes:
        return bytes(self._kept[name])

    def _full(self) -> bool:
        return all(len(kept) >= self._limit for kept in self._kept.values())

    def close(self) -> None:
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _exited(self) -> bool:
        """Whether the leader has exited, without reaping it."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _move(self, key: selectors.SelectorKey) -> None:
        if key.data == "stdin":
            self._send(key)
            return
        try:
            chunk = os.read(key.fd, 65536)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(key.fileobj)
            return
        kept = self._kept[key.data]
        kept += chunk[: max(0, self._limit - len(kept))]

    def _send(self, key: selectors.SelectorKey) -> None:
        try:
            sent = os.write(key.fd, self._pending[:65536])
        except BlockingIOError:
            return
        except BrokenPipeError:
            sent = len(self._pending)
        self._pending = self._pending[sent:]
        if not self._pending:
            self._selector.unregister(key.fileobj)
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
