"""A real sshd on loopback, for the user who runs the tests, and an ssh with a configuration of its own."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

USER = pwd.getpwuid(os.geteuid()).pw_name


@dataclass
class Relay:
    """A TCP relay to the server, whose connections can be cut and which can refuse new ones."""

    target: int
    refusing: bool = False
    accepted: int = 0
    _pairs: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                near.close()
                continue
            self.accepted += 1
            far = socket.create_connection(("127.0.0.1", self.target))
            self._pairs += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Break every connection."""
        pairs, self._pairs = self._pairs, []
        for end in pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        # A thread that waits in accept is woken by shutdown, not by close.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@dataclass(frozen=True)
class SshServer:
    """A running sshd; `home` is the program's folder at the far end, `bin` has an `ssh` that trusts it."""

    port: int
    home: Path
    bin: Path
    log: Path

    def url(self, *, port: int | None = None, python: str | None = sys.executable) -> str:
        path = "" if python is None else f"/{python.lstrip('/')}"
        return f"ssh://{USER}@127.0.0.1:{port or self.port}{path}"


def start_server(
    folder: Path, environment: Mapping[str, str]
) -> tuple[SshServer, subprocess.Popen[bytes]] | str:
    """A server in `folder`, or why there is none."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if sshd is None or shutil.which("ssh") is None:
        return "OpenSSH's server or client is not installed"
    shell = pwd.getpwuid(os.geteuid()).pw_shell
    if Path(shell).name in ("nologin", "false"):
        return f"user {USER} has no login shell"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True, timeout=30
        )
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = "".join(f' "{name}={value}"' for name, value in environment.items())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPermitRootLogin yes\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\nSetEnv{settings}\n"
    )
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(folder / "sshd_config")], stdout=out, stderr=out
        )
    _write_client(folder)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return SshServer(port, Path(environment["KERNEL_SCIENTIST_HOME"]), folder / "bin", log), process
        time.sleep(0.02)
    process.kill()
    process.wait()
    return f"sshd does not start: {log.read_text()[-300:]}"


def _write_client(folder: Path) -> None:
    """An `ssh` for the PATH that reads its configuration here: OpenSSH looks in the user's real home."""
    key = (folder / "host.pub").read_text()
    (folder / "known_hosts").write_text(f"* {key}")
    (folder / "ssh_config").write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n"
        "GlobalKnownHostsFile /dev/null\n"
    )
    (folder / "bin").mkdir()
    script = folder / "bin" / "ssh"
    script.write_text(
        f'#!/bin/sh\nexec {shutil.which("ssh")} -F "${{TEST_SSH_CONFIG:-{folder}/ssh_config}}" "$@"\n'
    )
    script.chmod(0o755)
