"""Addresses: what they may hold, and that nothing in them becomes an option or a command."""

from __future__ import annotations

import shlex

import pytest

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.sandbox.remote.connection import remote_command


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://gpu1", SshAddress("gpu1")),
        ("ssh://me@gpu1.example.org", SshAddress("gpu1.example.org", "me")),
        ("ssh://me@gpu1:2222/", SshAddress("gpu1", "me", 2222)),
        ("ssh://gpu1/usr/bin/python3.12", SshAddress("gpu1", python="/usr/bin/python3.12")),
        ("ssh://me@gpu1/~/venv/bin/python", SshAddress("gpu1", "me", python="~/venv/bin/python")),
        ("ssh://gpu1?target=mi300-warm", SshAddress("gpu1", target="mi300-warm")),
        ("ssh://me@gpu1:22/~/python?target=cpu", SshAddress("gpu1", "me", 22, "~/python", "cpu")),
        ("ssh://me@[fe80::1%eth0]:22", SshAddress("fe80::1%eth0", "me", 22)),
    ],
)
def test_an_address_is_read_and_written_back(text: str, address: SshAddress) -> None:
    assert SshAddress.parse(text) == address
    assert SshAddress.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://@gpu1",
        "ssh://-oProxyCommand=touch x",
        "ssh://-oProxyCommand=x@gpu1",
        "ssh://gpu1;reboot",
        "ssh://gpu1 reboot",
        "ssh://$(reboot)@gpu1",
        "ssh://`reboot`",
        "ssh://me@gpu1:22;reboot",
        "ssh://me@gpu1:0",
        "ssh://me@gpu1:70000",
        "ssh://me@gpu1/usr/bin/python;reboot",
        "ssh://me@gpu1/usr/bin/python -i",
        "ssh://me@gpu1/$(reboot)",
        "ssh://me@gpu1/usr/bin/",
        "ssh://me@gpu1/a'b",
        "ssh://me@gpu1\nreboot",
        "ssh://me@gpu1\x1b[2J",
        "ssh://[gpu1",
        "ssh://[::1",
        "ssh://gpu\u202e1",
        "ssh://gpu1?target=",
        "ssh://gpu1?python=x",
        "ssh://gpu1?target=ssh://gpu2",
        "ssh://gpu1?target=recorded:/etc/passwd",
        "ssh://gpu1?target=cpu&target=mi300",
        "ssh://gpu1/usr/bin/python?target=$(reboot)",
    ],
)
def test_anything_else_is_refused_in_one_printable_sentence(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        SshAddress.parse(text)
    assert str(raised.value).isprintable()


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="no password") as raised:
        SshAddress.parse("ssh://me:geheim@gpu1")
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize("python", [None, "/usr/bin/python3", "~/venv/bin/python"])
def test_the_far_shell_sees_one_simple_command(python: str | None) -> None:
    words = shlex.split(remote_command(SshAddress("gpu1", python=python)))
    assert words[:3] == ["exec", *(["sh", "-c"] if python is None else [python, "-c"])]
    # csh would take an exclamation mark, and fish a backslash, for more than itself.
    assert not set("!\\\n") & set(remote_command(SshAddress("gpu1", python=python)))
