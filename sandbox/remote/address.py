"""``ssh://user@host[:port][/python][?target=NAME]``, with nothing in it that means more to a shell.

Covered: options in place of a host or user, shell syntax in any part, passwords. Not covered: what the
user's own ssh configuration makes of a host's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UsageError
from ..printable import printable

__all__ = ["SCHEME", "SshAddress"]

SCHEME = "ssh://"
_FORM = "write it as ssh://user@host, ssh://user@host:port or ssh://user@host/path/to/python"
_SHAPE = re.compile(
    r"(?:(?P<user>[^@/]*)@)?(?:\[(?P<literal>[^\]/]*)\]|(?P<host>[^:/?\[\]]*))(?::(?P<port>[^/?]*))?(?P<path>/[^?]*)?(?:\?(?P<query>.*))?"
)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}\$?")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}")
_LITERAL = re.compile(r"[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9_.-]{1,15})?")
_PATH = re.compile(r"/(?:~/)?[A-Za-z0-9_.+/-]{1,1000}")
_QUERY = re.compile(r"target=([a-z0-9][a-z0-9-]{0,39})")
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class SshAddress:
    """Where and as whom; `host` may be a name of the user's ssh configuration, which then says the rest.

    `python` is an absolute path, or one that starts with ``~/``; ``None`` lets the other side choose.
    `target` is the name of one of that machine's own targets.
    """

    host: str
    user: str | None = None
    port: int | None = None
    python: str | None = None
    target: str = "auto"

    @classmethod
    def parse(cls, text: str) -> SshAddress:
        """The address that `text` writes; UsageError says which part of it is wrong."""
        shown = _shown(text)
        match = _SHAPE.fullmatch(text.removeprefix(SCHEME)) if text.startswith(SCHEME) else None
        if match is None:
            raise UsageError(f"'{shown}' is not an address of ssh; {_FORM}.")
        user, literal, host, port, path = match.group("user", "literal", "host", "port", "path")
        query = match["query"]
        if user is not None and ":" in user:
            # Not quoted back: it would be shown and recorded.
            raise UsageError(f"An address of ssh has no password in it; use a key, and {_FORM}.")
        name, form = (host, _HOST) if literal is None else (literal, _LITERAL)
        if not form.fullmatch(name):
            raise UsageError(f"'{shown}': the host '{_shown(name)}' cannot be one; {_FORM}.")
        if user is not None and not _USER.fullmatch(user):
            raise UsageError(f"'{shown}': the user name cannot be one; {_FORM}.")
        if path == "/":
            path = None
        if path is not None and (not _PATH.fullmatch(path) or path.endswith("/")):
            raise UsageError(
                f"'{shown}': the path of Python may have letters, digits and any of _.+-/ in it; give such a "
                "path, with a symbolic link where there is none."
            )
        asked = None if query is None else _QUERY.fullmatch(query)
        if query is not None and asked is None:
            raise UsageError(f"'{shown}': behind the question mark goes target=NAME, such as target=cpu.")
        python = None if path is None else path.replace("/~/", "~/", 1)
        return cls(name, user, _port(port, shown), python, "auto" if asked is None else asked[1])

    @property
    def destination(self) -> str:
        """``user@host``, as people write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.user is None else f"{self.user}@{host}"

    def __str__(self) -> str:
        port = "" if self.port is None else f":{self.port}"
        python = "" if self.python is None else f"/{self.python.removeprefix('/')}"
        target = "" if self.target == "auto" else f"?target={self.target}"
        return f"{SCHEME}{self.destination}{port}{python}{target}"


def _shown(text: str) -> str:
    return " ".join(printable(text[:_SHOWN], "?").split())


def _port(text: str | None, shown: str) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise UsageError(f"'{shown}': the port must be a number from 1 to 65535; {_FORM}.")
    return int(text)
