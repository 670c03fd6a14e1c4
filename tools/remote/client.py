"""The near end: puts the program on the other machine, asks, and asks again after a lost connection."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, final

from kernel_scientist import sandbox, tools
from kernel_scientist.sandbox.errors import KernelScientistError
from kernel_scientist.sandbox.inspection import Finding
from kernel_scientist.sandbox.remote.address import SshAddress
from kernel_scientist.sandbox.remote.connection import Connection, connect
from kernel_scientist.sandbox.remote.deployment import Bundle, bundle_files, files_below
from kernel_scientist.sandbox.remote.faults import ConnectionLost, RemoteFault

from ..text import clean
from .messages import (
    Fault,
    Host,
    InspectRequest,
    Installed,
    Request,
    exception_of,
    parse_findings,
    parse_reply,
)
from .requirements import JUDGE, WITH_COMPILER

__all__ = ["Link", "Patience", "RemoteMachine", "program"]

_MOST_PROGRAM_BYTES = 1 << 26
_INSTALL_TIMEOUT_S = 1900.0  # the far end gives up before
# A home on a network file system takes its time to load NumPy for the first time.
_START_TIMEOUT_S = 180.0

Message = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for the other machine, and how often to try again.

    A far end at work says so every few seconds, so `silence_s` without a word is a lost connection.
    `pauses_s` are the waits before each further try.
    """

    silence_s: float = 45.0
    request_s: float = 3600.0
    pauses_s: tuple[float, ...] = (1.0, 5.0, 15.0)


@functools.cache
def program() -> Bundle:
    """What the judge needs on another machine: the rooms that evaluate kernels, as they are here."""
    rooms = {"sandbox": sandbox.__file__, "tools": tools.__file__}
    return bundle_files(
        {
            f"kernel_scientist/{name}/{file}": data
            for name, init in rooms.items()
            for file, data in files_below(Path(str(init)).parent, most_bytes=_MOST_PROGRAM_BYTES).items()
        }
    )


@final
class Link:
    """One connection that is served; `opened` are the assessors that the far end has on it."""

    def __init__(self, connection: Connection, patience: Patience) -> None:
        self.connection = connection
        self.has_target = False
        self.opened: set[int] = set()
        self._patience = patience

    def ask(
        self, request: Request | Message, blob: bytes = b"", *, silence_s: float | None = None
    ) -> Message:
        """The answer to `request`; the exception that the far end met, when it met one."""
        message = request if isinstance(request, Mapping) else request.model_dump(mode="json")
        self.connection.send(message, blob)
        deadline = time.monotonic() + self._patience.request_s
        while time.monotonic() < deadline:
            reply = self.connection.receive(silence_s or self._patience.silence_s)
            if reply == {"working": True}:
                continue
            if reply.keys() == {"error"}:
                raise self._raised(reply["error"])
            return reply
        limit = f"{self._patience.request_s:g} s"
        raise RemoteFault(f"{self.connection.address} has worked on one request for more than {limit}.")

    def _raised(self, said: object) -> Exception:
        where = str(self.connection.address)
        if isinstance(said, str):
            return RemoteFault(f"On {where}: {' '.join(clean(said).split()).rstrip('.')}.")
        fault = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
        return exception_of(parse_reply(Fault, fault), where)


@final
class RemoteMachine:
    """A machine reached by ssh. Calls from several threads wait for one another, `offer` excepted.

    RemoteFault or UnusableEnvironment when it cannot be used; the first connection is tried once, and one
    that breaks is made again as `patience` says.
    """

    def __init__(self, address: SshAddress, patience: Patience | None = None) -> None:
        self.address = address
        self._patience = patience or Patience()
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._reached = False

    def call(self, work: Callable[[Link], T]) -> T:
        """What `work` returns, done again from its beginning on a new connection when one is lost."""
        return self._persist(lambda: work(self._linked()))

    def offer(self, assessor: int, request: Request) -> None:
        """Send a request that has no answer, if it can be sent at once."""
        link = self._link
        if link is not None and assessor in link.opened:
            link.connection.offer(request.model_dump(mode="json"))

    def look(self) -> Host:
        """What there is on the other machine; nothing is put there."""
        return self._persist(lambda: self._bare(_look))

    def inspect(self) -> list[Finding]:
        """What the machine is fit for, found there."""
        return self.call(lambda link: parse_findings(link.ask(InspectRequest())))

    def install(self) -> str:
        """Make a virtual environment with all that is needed there; the path of its Python."""

        def work(link: Link) -> str:
            request = {"do": "install", "requirements": WITH_COMPILER}
            return parse_reply(Installed, link.ask(request, silence_s=_INSTALL_TIMEOUT_S)).executable

        return self._persist(lambda: self._bare(work))

    def close(self) -> None:
        """End the connection; a later call makes a new one."""
        with self._lock:
            self._drop()

    def _persist(self, attempt: Callable[[], T]) -> T:
        with self._lock:
            tries = 0
            while True:
                try:
                    return attempt()
                except ConnectionLost as error:
                    self._drop()
                    tries += 1
                    if not self._reached:
                        raise RemoteFault(str(error)) from None
                    if tries > len(self._patience.pauses_s):
                        raise RemoteFault(f"{error} It was tried {tries} times.") from None
                except ValueError:
                    self._drop()
                    raise RemoteFault(
                        f"{self.address} gave an answer that cannot be read; nothing of it is used."
                    ) from None
                except KernelScientistError:
                    raise
                except BaseException:
                    # Interrupted in the middle of a request: its answer must not be taken for the next one's.
                    self._drop()
                    raise
                time.sleep(self._patience.pauses_s[tries - 1])

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.connection.close()

    def _bare(self, work: Callable[[Link], T]) -> T:
        link = Link(connect(self.address), self._patience)
        try:
            return work(link)
        finally:
            link.connection.close()

    def _linked(self) -> Link:
        if self._link is None:
            link = Link(connect(self.address), self._patience)
            try:
                _deploy(link)
            except BaseException:
                link.connection.close()
                raise
            self._link, self._reached = link, True
        return self._link


def _look(link: Link) -> Host:
    return parse_reply(Host, link.ask({"do": "look", "digest": program().digest, "modules": JUDGE}))


def _deploy(link: Link) -> None:
    """Have the far end serve the program of here, which is put there when it is not there yet."""
    host, address = _look(link), link.connection.address
    if (host.system, host.machine) != ("Linux", "x86_64"):
        raise RemoteFault(f"{address} is {host.system} on {host.machine}; x86-64 Linux is needed.")
    if host.missing:
        wanted = " ".join(f"'{one}'" for one in host.missing)
        raise RemoteFault(
            f"{host.executable} on {address} lacks {', '.join(host.missing)}; install them there "
            f"(`{host.executable} -m pip install {wanted}`), or have an environment made for them: "
            f"`kernel-scientist doctor --target {address} --install`."
        )
    bundle = program()
    if not host.deployed:
        link.ask({"do": "unpack", "digest": bundle.digest}, bundle.blob)
    ready = link.ask({"do": "serve", "digest": bundle.digest}, silence_s=_START_TIMEOUT_S)
    if ready != {"ready": True}:
        raise ValueError("not the server")
