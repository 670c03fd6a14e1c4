"""One process on another machine, spoken to in frames over ssh's standard streams.

Covered: a far end that says nothing, says too much, speaks before its turn or goes away; whatever it prints
besides frames is kept for the error's sentence. Not covered: a far end that lies in a well-formed frame,
which is for whoever reads the message.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast, final

from ..errors import UnusableEnvironment
from . import bootstrap
from .address import SshAddress
from .faults import ConnectionLost, explain

__all__ = ["Connection", "connect"]

_CONNECT_TIMEOUT_S = 15
_HELLO_TIMEOUT_S = 40.0
_MOST_GREETING = 1 << 16
_MOST_MESSAGE = 1 << 25
_MOST_STDERR = 1 << 14
_CHUNK = 1 << 16
_HEADER_BYTES = 32
_END_TIMEOUT_S = 2.0
# The far end notices that the line is closed, whether ssh ends by itself or has to be ended.
_FAREWELL_S = 0.3
# Reads a program of the length that its first line says, and does not put the current folder on the path.
_READER = (
    "import sys; v = sys.version_info; "
    'v < (3, 11) and sys.exit("kernel-scientist needs Python 3.11, not %d.%d" % v[:2]); '
    "sys.path[:] = [p for p in sys.path if p]; i = sys.stdin.buffer; n = i.readline(); exec(i.read(int(n)))"
)
# The environment that was made there before any other, then what the PATH has.
_CHOOSER = (
    "h=${KERNEL_SCIENTIST_HOME:+$KERNEL_SCIENTIST_HOME/cache}; "
    "h=${h:-${XDG_CACHE_HOME:-$HOME/.cache}/kernel-scientist}; "
    'for p in "$h/remote/venv/bin/python" python3 python3.14 python3.13 python3.12 python3.11; do '
    'command -v "$p" >/dev/null 2>&1 && "$p" -c "import sys; sys.exit(sys.version_info < (3, 11))" '
    '>/dev/null 2>&1 && exec "$p" -c "$0"; done; exit 127'
)
_OPTIONS = (
    "-T", "-a", "-x",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={_CONNECT_TIMEOUT_S}",
    "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3",
    "-o", "ClearAllForwardings=yes",
    "-o", "PermitLocalCommand=no",
    "-o", "RemoteCommand=none",
    "-o", "ControlPath=none",
    "-o", "LogLevel=ERROR",
)  # fmt: skip


def remote_command(address: SshAddress) -> str:
    """The command line for the far login shell: the same to sh, bash, zsh, csh and fish."""
    if address.python is None:
        return f"exec sh -c {shlex.quote(_CHOOSER)} {shlex.quote(_READER)}"
    # A tilde is for the shell to expand; nothing else in an address's path means anything to one.
    return f"exec {address.python} -c {shlex.quote(_READER)}"


def connect(address: SshAddress) -> Connection:
    """A connection whose far end answers; `RemoteFault` or `ConnectionLost` with ssh's reason."""
    program = shutil.which("ssh")
    if program is None:
        raise UnusableEnvironment(
            "There is no ssh program on this machine; install OpenSSH's client (Debian: openssh-client)."
        )
    place = [
        *(("-p", str(address.port)) if address.port else ()),
        *(("-l", address.user) if address.user else ()),
    ]
    command = [program, *_OPTIONS, *place, "--", address.host, remote_command(address)]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise UnusableEnvironment(f"Cannot start {program}: {error.strerror}.") from error
    connection = Connection(address, process)
    try:
        connection.greet()
    except BaseException:
        connection.close()
        raise
    return connection


@final
class Connection:
    """Frames to and from one far process. `send` may be called beside another thread's `receive`."""

    def __init__(self, address: SshAddress, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self._process = process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        for fd in (self._stdin, self._stdout):
            os.set_blocking(fd, False)
        self._received = bytearray()
        self._said = bytearray()
        self._sending = threading.Lock()
        self._listener = threading.Thread(target=_keep, args=(process.stderr, self._said), daemon=True)
        self._listener.start()
        self.close = weakref.finalize(self, _end, process, self._listener)

    def greet(self) -> None:
        """Send the program that answers, and read until it does."""
        nonce = secrets.token_hex(16)
        source = Path(bootstrap.__file__).read_bytes() + f"\nmain({nonce!r})\n".encode()
        self._write(b"%d\n%s" % (len(source), source), _HELLO_TIMEOUT_S)
        mark = f"\n{bootstrap.MARK} {nonce}\n".encode()
        deadline = time.monotonic() + _HELLO_TIMEOUT_S
        while (at := self._received.find(mark)) < 0:
            if len(self._received) > _MOST_GREETING:
                raise ConnectionLost(
                    f"{self.address} says something else than kernel-scientist does; keep its shell's "
                    "start-up files from printing when nobody is logged in at a terminal."
                )
            self._read(deadline)
        del self._received[: at + len(mark)]

    def send(self, message: Mapping[str, Any], blob: bytes = b"", *, timeout_s: float = 120.0) -> None:
        """Send one frame; `ConnectionLost` when the far end does not take it."""
        self._write(bootstrap.encode_frame(message, blob), timeout_s)

    def offer(self, message: Mapping[str, Any]) -> None:
        """Send a frame that may as well not arrive; dropped when another is being sent."""
        if not self._sending.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(ConnectionLost):
                self._write_locked(bootstrap.encode_frame(message), 5.0)
        finally:
            self._sending.release()

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The next frame's object; `ConnectionLost` at the end, in silence, and for what is no frame."""
        deadline = time.monotonic() + timeout_s
        try:
            while (end := self._received.find(b"\n", 0, _HEADER_BYTES)) < 0:
                if len(self._received) >= _HEADER_BYTES:
                    raise ValueError("no header")
                self._read(deadline)
            size, blob = bootstrap.frame_sizes(bytes(self._received[: end + 1]))
            if blob or size > _MOST_MESSAGE:
                raise ValueError("too large")
            while len(self._received) < end + 1 + size:
                self._read(deadline)
            text = bytes(self._received[end + 1 : end + 1 + size])
            del self._received[: end + 1 + size]
            message: Any = json.loads(text, parse_constant=_refuse_constant)
            if not isinstance(message, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError):
            raise ConnectionLost(f"{self.address} sent what is not a message of kernel-scientist.") from None
        return cast("dict[str, Any]", message)

    def _write(self, data: bytes, timeout_s: float) -> None:
        with self._sending:
            self._write_locked(data, timeout_s)

    def _write_locked(self, data: bytes, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        left = memoryview(data)
        while left:
            if not self.close.alive:
                raise ConnectionLost(f"The connection to {self.address} is closed.")
            _, ready, _ = select.select([], [self._stdin], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                # Half a frame may have gone: nothing more can be said on this line.
                self._process.kill()
                raise ConnectionLost(f"{self.address} has taken nothing for {timeout_s:g} s.")
            try:
                left = left[os.write(self._stdin, left[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._fault() from None

    def _read(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if left <= 0 or not poll.poll(left * 1000):
            raise ConnectionLost(f"{self.address} does not answer.")
        chunk = os.read(self._stdout, _CHUNK)
        if not chunk:
            raise self._fault()
        self._received += chunk

    def _fault(self) -> Exception:
        """Why the connection ended, by what ssh said last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_TIMEOUT_S)
        self._listener.join(_END_TIMEOUT_S)
        return explain(self.address, self._process.returncode, self._said.decode(errors="replace"))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _keep(stream: IO[bytes], said: bytearray) -> None:
    """Read `stream` to its end and keep the last of it."""
    with contextlib.suppress(OSError, ValueError):
        while chunk := os.read(stream.fileno(), _CHUNK):
            said += chunk
            del said[:-_MOST_STDERR]


def _end(process: subprocess.Popen[bytes], listener: threading.Thread) -> None:
    """Close the line: the far end notices and stops what it does; ssh is killed when it lingers."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_FAREWELL_S)
    except subprocess.TimeoutExpired:
        # A ProxyCommand is in its group; before the leader is reaped the number is no other group's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    listener.join(_END_TIMEOUT_S)
    process.stdout.close()
    process.stderr.close()
