"""What goes wrong before the first kernel: one sentence each, exit code 5, and what to do in it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from kernel_scientist.sandbox.errors import UnusableEnvironment
from kernel_scientist.sandbox.remote import connection
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.sandbox.remote.bootstrap import MARK
from kernel_scientist.tools.remote.client import Patience, RemoteMachine, program

from .server import USER, SshServer


def machine(url: str) -> RemoteMachine:
    return RemoteMachine(SshAddress.parse(url), Patience(pauses_s=(0.01,)))


def fault(url: str) -> str:
    """The sentence that ends a first look at a machine that cannot be used."""
    one = machine(url)
    with pytest.raises(UnusableEnvironment) as raised:
        one.inspect()
    one.close()
    sentence = str(raised.value)
    assert raised.value.exit_code == 5
    assert sentence.isprintable() and sentence.endswith(".")
    return sentence


@pytest.fixture
def far_python(tmp_path: Path, ssh: SshServer) -> Path:
    """Where a program is written that stands in for the other machine's Python."""
    return tmp_path / "python"


def stand_in(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_host_key_that_is_not_known_is_not_accepted(
    ssh: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (ssh.bin.parent / "ssh_config").read_text().replace(f"{ssh.bin.parent}/known_hosts", "/dev/null")
    (tmp_path / "config").write_text(own)
    monkeypatch.setenv("TEST_SSH_CONFIG", str(tmp_path / "config"))
    said = fault(ssh.url())
    assert f"does not know the host key of 127.0.0.1: run `ssh -p {ssh.port} {USER}@127.0.0.1` once" in said


def test_a_host_key_that_has_changed_is_an_alarm(
    ssh: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ssh.bin.parent
    (tmp_path / "known").write_text(f"* {(folder / 'user.pub').read_text()}")
    (tmp_path / "config").write_text(
        (folder / "ssh_config").read_text().replace(f"{folder}/known_hosts", str(tmp_path / "known"))
    )
    monkeypatch.setenv("TEST_SSH_CONFIG", str(tmp_path / "config"))
    said = fault(ssh.url())
    assert f"ssh-keygen -R '[127.0.0.1]:{ssh.port}'" in said
    assert "somebody stands between" in said


def test_a_user_who_may_not_log_in_is_told_about_keys(ssh: SshServer) -> None:
    said = fault(f"ssh://no_such_user@127.0.0.1:{ssh.port}")
    assert "refuses user 'no_such_user'" in said
    assert f"ssh-copy-id -p {ssh.port} no_such_user@127.0.0.1" in said


def test_a_port_where_nobody_listens(ssh: SshServer) -> None:
    assert "runs no ssh server at port 1;" in fault(f"ssh://{USER}@127.0.0.1:1")


def test_a_host_that_does_not_exist(ssh: SshServer) -> None:
    assert "there is no host 'no-such-host.invalid'" in fault("ssh://no-such-host.invalid")


def test_a_python_that_is_not_there(ssh: SshServer) -> None:
    assert "has no /no/such/python; install one there" in fault(ssh.url(python="/no/such/python"))


def test_a_python_that_is_too_old(ssh: SshServer, far_python: Path) -> None:
    aged = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    path = stand_in(far_python, f"exec {sys.executable} -c '{aged}' \"$2\"")
    assert "is 3.9, and 3.11 or newer is needed" in fault(ssh.url(python=path))


def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(
    ssh: SshServer, far_python: Path
) -> None:
    said = fault(ssh.url(python=stand_in(far_python, f'exec {sys.executable} -S "$@"')))
    for expected in ("lacks ", "numpy>=1.26", "-m pip install '", "doctor --target ssh://", "--install`"):
        assert expected in said


def test_a_shell_that_greets_is_no_fault(ssh: SshServer, far_python: Path) -> None:
    path = stand_in(far_python, f'echo "Welcome!"; echo "1 0"; exec {sys.executable} "$@"')
    one = machine(ssh.url(python=path))
    assert one.look().system == "Linux"
    one.close()


def test_a_machine_that_talks_without_end(ssh: SshServer, far_python: Path) -> None:
    assert "says something else" in fault(ssh.url(python=stand_in(far_python, "exec yes hello")))


def test_a_machine_that_does_not_answer(
    ssh: SshServer, far_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_HELLO_TIMEOUT_S", 0.5)
    assert "does not answer" in fault(ssh.url(python=stand_in(far_python, "exec sleep 60")))


def test_a_python_that_ends_at_once_is_quoted_without_its_colours(ssh: SshServer, far_python: Path) -> None:
    script = "printf 'out of \\033[31mmemory\\033[0m\\n' >&2; exit 9"
    said = fault(ssh.url(python=stand_in(far_python, script)))
    assert said.endswith("ended with exit status 9: out of memory.")


@pytest.mark.parametrize(
    "answer",
    [
        b"5 0\nhello",
        b"2 7\n{}zipfile",
        b"999999999 0\n{",
        b"no header at all, and it goes on for long",
        b"2 0\n[]",
        b'13 0\n{"home": NaN}',
        b"2 0\n{}",
        b'17 0\n{"python": [1,2]}',
        b"60000 0\n" + b"[" * 60000,
    ],
)
def test_answers_that_are_none_are_not_used(ssh: SshServer, far_python: Path, answer: bytes) -> None:
    (far_python.parent / "answer").write_bytes(answer)
    mark = f"sed -un '/^main(/{{s/^main(.\\(.*\\).)$/\\n{MARK} \\1/p;q}}'"
    script = f"{mark}; cat {far_python.parent}/answer; sleep 5"
    said = fault(ssh.url(python=stand_in(far_python, script)))
    assert "cannot be read" in said or "is not a message" in said


def test_what_was_put_there_is_put_there_again_when_it_is_damaged(ssh: SshServer) -> None:
    one = machine(ssh.url())
    one.inspect()
    one.close()
    folder = ssh.home / "cache/remote/program" / program().digest
    damaged = folder / "kernel_scientist/tools/judge.py"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"raise SystemExit")
    unused = folder.with_name("f" * 64)
    shutil.copytree(folder, unused)
    os.utime(unused, (0, time.time() - 40 * 86400))
    assert one.inspect()
    one.close()
    assert damaged.read_bytes() == whole
    assert not unused.exists()


@pytest.mark.slow
def test_an_environment_that_cannot_be_made_is_removed_and_its_reason_quoted(
    ssh: SshServer, far_python: Path
) -> None:
    # Without an index pip has nothing to install from, as on a machine without a network.
    path = stand_in(far_python, f'export PIP_NO_INDEX=1; exec {sys.executable} "$@"')
    one = machine(ssh.url(python=path))
    with pytest.raises(UnusableEnvironment, match=r"cannot (install the packages with pip|make a virtual)"):
        one.install()
    assert not (ssh.home / "cache/remote/venv").exists()
