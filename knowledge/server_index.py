"""The vector index on a Chroma server: one collection for each knowledge base and embedding model.

The server takes several writers and survives being killed, so vectors are sent to it in place; what the
collection holds is written into its metadata last. As with the embedded index the store is the truth: a
server that lags, was emptied or cannot be reached makes searches slower, never wrong.
Not covered: a knowledge base copied to the same path of another machine, with one server for both.
"""

from __future__ import annotations

import hashlib
import re
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

from kernel_scientist.sandbox.errors import UnusableEnvironment, UsageError
from kernel_scientist.sandbox.files import FileLock
from kernel_scientist.sandbox.printable import printable

from .chroma_store import ChromaStore, ChromaStoreError
from .index import combined
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ServerAddress", "ServerIndex"]

_WAIT_S = 120.0
_TOLERATED_LAG = 2000
_ANSWER_S = 5.0
_DEFAULT_PORT = 8000


@final
class ServerAddress:
    """``http://host:port`` of a Chroma server. Raises `UsageError` for what is not one."""

    def __init__(self, text: str) -> None:
        shown = printable(text, " ")[:80]
        wrong = UsageError(
            f"'{shown}' is not the address of a Chroma server; give one like http://localhost:8000."
        )
        try:
            parts = urlsplit(text.strip())
            port = parts.port
        except ValueError:
            raise wrong from None
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.path.strip("/")
            or parts.query
        ):
            raise wrong
        if parts.username or parts.password:
            raise UsageError("A Chroma server's address may hold no user name or password; leave them out.")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = port or (443 if self.secure else _DEFAULT_PORT)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def require_answer(self) -> None:
        """Raise `UnusableEnvironment` unless a Chroma server answers there."""
        try:
            with urllib.request.urlopen(f"{self}/api/v2/heartbeat", timeout=_ANSWER_S) as answer:
                if b"heartbeat" in answer.read(1000):
                    return
            reason = "what answers is no Chroma server"
        except (OSError, ValueError) as error:
            reason = printable(str(getattr(error, "reason", error)), " ")[:200]
        raise UnusableEnvironment(
            f"No Chroma server answers at {self} ({reason}); start one with "
            f"'chroma run --path FOLDER --port {self.port}', or do without --chroma."
        )


@final
class ServerIndex:
    """The index over one embedder's vectors on a server; for use by one thread at a time."""

    def __init__(self, address: ServerAddress, folder: Path, store: Store, embedder: str) -> None:
        self._address = address
        self._lock_path = folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', str(address))}.lock"
        self._store = store
        self._embedder = embedder
        self._chroma: ChromaStore | None = None
        self._tried = False
        self.note = ""

    @property
    def place(self) -> str:
        return str(self._address)

    def close(self) -> None:
        """Close the connection."""
        chroma, self._chroma = self._chroma, None
        if chroma is not None:
            try:
                chroma.close()
            except ChromaStoreError as error:
                self.note = f"the connection to the Chroma server did not close ({error})"

    def search(self, vector: NDArray[np.float32], limit: int, documents: set[str] | None = None) -> list[int]:
        """Chunk numbers, nearest first; only of `documents` if given."""
        near: list[tuple[int, float]] = []
        last = 0
        try:
            chroma = self._connected()
            last = chroma.last()
            if not self._tried or self._store.vectors.last(self._embedder) - last > _TOLERATED_LAG:
                self._tried = True
                self.update(timeout_s=0)
                last = chroma.last()
            near = chroma.query(vector, limit, documents)
        except (ChromaStoreError, OSError, UnusableEnvironment) as error:
            self.note = f"the Chroma server at {self._address} failed ({error}); searched without it"
            near, last = [], 0
            self.close()
        return combined(self._store, self._embedder, vector, near, last, limit, documents)

    def update(self, *, timeout_s: float = _WAIT_S, afresh: bool = False) -> None:
        """Bring the collection in step with the store; `afresh` from nothing.

        Raises `UnusableEnvironment` when another process holds the lock for too long, and `ChromaStoreError`.
        """
        with FileLock(self._lock_path, timeout_s=timeout_s, purpose="updating the vector index"):
            chroma = self._connected()
            if afresh:
                chroma.empty()
            wanted = self._store.vectors.numbers(self._embedder)
            numbers, _, documents, rows = self._store.vectors.of(self._embedder, after=chroma.last())
            if numbers:
                chroma.add(numbers, documents, rows)
            if chroma.count() != len(wanted.union(numbers)):
                self._reconcile(chroma)
            chroma.set_last(max(wanted.union(numbers), default=0))

    def state(self) -> tuple[int, int]:
        """How many vectors the collection holds, and how many wait for it."""
        numbers = self._store.vectors.numbers(self._embedder)
        try:
            chroma = self._connected()
            last = chroma.last()
            return chroma.count(), sum(number > last for number in numbers)
        except (ChromaStoreError, UnusableEnvironment) as error:
            self.note = f"the Chroma server at {self._address} failed ({error})"
            self.close()
            return 0, len(numbers)

    def _reconcile(self, chroma: ChromaStore) -> None:
        """Make the collection hold just the store's vectors, whatever it holds."""
        held = chroma.numbers()
        wanted = self._store.vectors.numbers(self._embedder)
        chroma.delete(sorted(held - wanted))
        if wanted - held:
            numbers, _, documents, rows = self._store.vectors.of(self._embedder)
            missing = [i for i, number in enumerate(numbers) if number not in held]
            chroma.add([numbers[i] for i in missing], [documents[i] for i in missing], rows[missing])

    def _connected(self) -> ChromaStore:
        if self._chroma is None:
            name = f"{self._store.identity()} {self._store.path.resolve()} {self._embedder}"
            collection = f"kernel-scientist-{hashlib.sha256(name.encode()).hexdigest()[:24]}"
            address = self._address
            # Chroma's own client waits for ever while it connects.
            address.require_answer()
            self._chroma = ChromaStore.on_server(address.host, address.port, address.secure, collection)
        return self._chroma
