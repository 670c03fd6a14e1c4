"""What ssh and the far shell say when a connection cannot be made, as one sentence with what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..errors import UnusableEnvironment
from ..printable import printable, without_escapes
from .address import SshAddress

__all__ = ["ConnectionLost", "RemoteFault", "explain"]

_SHOWN = 300
_NO_PYTHON = (126, 127)


@final
class RemoteFault(UnusableEnvironment):
    """The other machine cannot be used; another try would end the same way."""


@final
class ConnectionLost(Exception):  # noqa: N818 - a state of the line, which another try may mend
    """The connection broke or fell silent; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class _Cause:
    pattern: str
    sentence: Callable[[SshAddress], str]
    lasting: bool = True


def _login(address: SshAddress) -> str:
    who = f"user '{address.user}'" if address.user else "this user name"
    return (
        f"{address.host} refuses {who}: check the name, and put a key there that needs no typing "
        f"(`ssh-copy-id {_ssh_words(address)}`, and ssh-agent for a key with a passphrase)"
    )


def _ssh_words(address: SshAddress) -> str:
    port = "" if address.port is None else f"-p {address.port} "
    return f"{port}{address.destination}"


# In this order: a changed key is followed by the words for an unknown one.
_CAUSES = (
    _Cause(
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        lambda a: (
            f"the host key of {a.host} is not the one this machine knows: it was set up anew, or "
            f"somebody stands between; find out which, then run `ssh-keygen -R '{_known_name(a)}'` and "
            f"`ssh {_ssh_words(a)}` once"
        ),
    ),
    _Cause(
        "Host key verification failed|No .* host key is known",
        lambda a: (
            f"this machine does not know the host key of {a.host}: run `ssh {_ssh_words(a)}` once, "
            "compare the fingerprint and accept it"
        ),
    ),
    _Cause("Permission denied|Too many authentication failures", _login),
    _Cause(
        "account is (currently )?not available|account is locked|not allowed because",
        lambda a: f"the account {a.destination} cannot be logged in to; use another one",
    ),
    _Cause(
        "Could not resolve hostname",
        lambda a: f"there is no host '{a.host}' in the name service or in ~/.ssh/config; check the name",
    ),
    _Cause(
        "Connection refused",
        lambda a: f"{a.host} runs no ssh server at port {a.port or 22}; start it, or give its port",
        lasting=False,
    ),
    _Cause(
        "timed out|No route to host|Network is unreachable|Host is down",
        lambda a: f"{a.host} cannot be reached at port {a.port or 22}; is it on, and is the network there?",
        lasting=False,
    ),
    _Cause(
        "Bad owner or permissions|Bad configuration option|Can't open user config",
        lambda a: f"ssh refuses its own configuration; `ssh {_ssh_words(a)}` shows why",
    ),
)


def _known_name(address: SshAddress) -> str:
    return address.host if address.port is None else f"[{address.host}]:{address.port}"


def explain(address: SshAddress, status: int | None, said: str) -> RemoteFault | ConnectionLost:
    """What became of a connection whose ssh ended with `status` (``None``: it had to be ended)."""
    lines = [line for line in printable(without_escapes(said), "?").splitlines() if line.strip()]
    if (old := re.search(r"kernel-scientist needs Python 3\.11, not (\d+\.\d+)", said)) is not None:
        return RemoteFault(
            f"Python on {address.host} is {old[1]}, and 3.11 or newer is needed; install one there, or name "
            "it: ssh://user@host/path/to/python."
        )
    if status in _NO_PYTHON:
        what = f"no {address.python}" if address.python else "no Python 3.11 or newer in its PATH"
        return RemoteFault(
            f"{address.host} has {what}; install one there, or name another: ssh://user@host/path/to/python."
        )
    for cause in _CAUSES:
        if re.search(cause.pattern, "\n".join(lines)):
            sentence = f"Cannot use {address}: {cause.sentence(address)}."
            return RemoteFault(sentence) if cause.lasting else ConnectionLost(sentence)
    last = f": {lines[-1].strip()[:_SHOWN]}" if lines else ""
    ended = "" if status in (None, 255) else f" with exit status {status}"
    return ConnectionLost(f"The connection to {address} ended{ended}{last.rstrip('.')}.")
