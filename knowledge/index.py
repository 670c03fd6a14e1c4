"""The vector index: Chroma on disk, derived from the store, behind exact search for what it does not hold
yet.

One process at a time changes it, under a lock, in a copy (see `generations`); readers are never in the way.
It may lag behind the store or be missing altogether: vectors above its last number are compared one by one,
and vectors that the store no longer has are dropped, so an answer is always of the store as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment
from kernel_scientist.sandbox.files import FileLock

from .chroma_store import ChromaStore, ChromaStoreError
from .generations import Generations, Lease, Pointer
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Index", "VectorIndex", "combined"]

_WAIT_S = 120.0
# Above this many vectors that only exact search finds, a search first tries to bring the index up to date.
_TOLERATED_LAG = 2000


class Index(Protocol):
    """What answers vector queries, derived from the store; `note` says what went wrong with it last."""

    note: str

    @property
    def place(self) -> str:
        """Where it is: a folder's name, or a server's address."""
        ...

    def search(
        self, vector: NDArray[np.float32], limit: int, documents: set[str] | None = None
    ) -> list[int]: ...

    def update(self, *, timeout_s: float = _WAIT_S, afresh: bool = False) -> None: ...

    def state(self) -> tuple[int, int]: ...

    def close(self) -> None: ...


@final
class VectorIndex:
    """The index over one embedder's vectors; for use by one thread at a time."""

    def __init__(self, folder: Path, store: Store, embedder: str) -> None:
        self._generations = Generations(folder / re.sub(r"[^A-Za-z0-9.-]+", "-", embedder))
        self._store = store
        self._embedder = embedder
        self._open: tuple[Pointer, ChromaStore, Lease] | None = None
        self._tried = False
        self.note = ""

    @property
    def place(self) -> str:
        return str(self._generations.folder)

    def close(self) -> None:
        """Let go of the version in use."""
        if self._open is not None:
            _, chroma, lease = self._open
            self._open = None
            try:
                chroma.close()
            except ChromaStoreError as error:
                self.note = f"the vector index did not close ({error})"
            lease.release()

    def search(self, vector: NDArray[np.float32], limit: int, documents: set[str] | None = None) -> list[int]:
        """Chunk numbers, nearest first; only of `documents` if given."""
        reader = self._reader()
        near: list[tuple[int, float]] = []
        last = 0
        if reader is not None:
            pointer, chroma = reader
            try:
                near, last = chroma.query(vector, limit, documents), pointer.last
            except ChromaStoreError as error:
                self.note = f"the vector index failed ({error}); searched without it"
                self.close()
        return combined(self._store, self._embedder, vector, near, last, limit, documents)

    def update(self, *, timeout_s: float = _WAIT_S, afresh: bool = False) -> None:
        """Bring the index in step with the store; `afresh`, or when it is damaged, from the store alone.

        Raises `UnusableEnvironment` when another process holds the lock for too long or no space is left, and
        `ChromaStoreError`.
        """
        try:
            self._update(timeout_s, afresh)
        except (ChromaStoreError, OSError) as error:
            # Chroma says it in many ways, and not always.
            if self._generations.is_full():
                raise UnusableEnvironment(
                    f"No space is left for the vector index at {self.place}; free some, until then searches "
                    "compare vectors one by one"
                ) from error
            raise

    def _update(self, timeout_s: float, afresh: bool) -> None:
        generations = self._generations
        generations.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(
            generations.folder / "writer.lock", timeout_s=timeout_s, purpose="updating the vector index"
        ):
            pointer = generations.current()
            usable = pointer if pointer is not None and not afresh and generations.is_whole(pointer) else None
            try:
                if usable is None or not self._in_step(usable):
                    self._replace(usable)
            finally:
                # A version that a full disk left unfinished would keep it full.
                generations.discard_others()

    def state(self) -> tuple[int, int]:
        """How many vectors the index holds, and how many wait for it."""
        pointer = self._generations.current()
        if pointer is None:
            return 0, len(self._store.vectors.numbers(self._embedder))
        numbers = self._store.vectors.numbers(self._embedder)
        return pointer.count, sum(number > pointer.last for number in numbers)

    def _in_step(self, pointer: Pointer) -> bool:
        # Numbers are never used again: as many vectors with the same highest number are the same vectors.
        count = self._store.counts(self._embedder)[2]
        return pointer.last == self._store.vectors.last(self._embedder) and pointer.count == count

    def _replace(self, base: Pointer | None) -> None:
        """Write the next version, from a copy of `base` if given, and switch to it."""
        generations = self._generations
        version = generations.fresh()
        try:
            if base is not None:
                generations.copy(base.version, version)
            chroma = ChromaStore.in_folder(generations.path(version), create=base is None)
            try:
                count, last = self._fill(chroma, base)
            finally:
                chroma.close()
        except (ChromaStoreError, OSError):
            generations.drop(version)
            if base is None:
                raise
            self._replace(None)
            return
        generations.switch(version, count, last)

    def _fill(self, chroma: ChromaStore, base: Pointer | None) -> tuple[int, int]:
        """Make `chroma` hold the store's vectors; returns how many there are, and the highest number."""
        wanted = self._store.vectors.numbers(self._embedder)
        # Up to its last number vectors can only have been removed; asking for all numbers takes long.
        if base is not None and base.count != sum(number <= base.last for number in wanted):
            chroma.delete(sorted(chroma.numbers() - wanted))
        numbers, _, documents, rows = self._store.vectors.of(self._embedder, after=base.last if base else 0)
        if numbers:
            chroma.add(numbers, documents, rows)
            # Asking makes Chroma write what it still holds back; a store that cannot answer is not switched
            # to.
            if not chroma.query(rows[0], 1, None):
                raise ChromaStoreError("a store that was just filled does not answer")
        # Another process may have added some since `wanted` was read.
        return chroma.count(), max(wanted.union(numbers), default=0)

    def _reader(self) -> tuple[Pointer, ChromaStore] | None:
        """The current version, opened; ``None`` when there is none that works."""
        if not self._tried or self._lag() > _TOLERATED_LAG:
            self._tried = True
            self._try_update()
        for _ in range(3):
            pointer = self._generations.current()
            if pointer is None:
                return None
            if self._open is not None and self._open[0].version == pointer.version:
                return pointer, self._open[1]
            self.close()
            lease = self._generations.lease(pointer.version)
            if lease is None:
                continue  # replaced and deleted since the pointer was read
            if not self._generations.is_whole(pointer):
                lease.release()
                self.note = "the vector index is damaged; searched without it"
                return None
            try:
                self._open = pointer, ChromaStore.in_folder(self._generations.path(pointer.version)), lease
            except ChromaStoreError as error:
                lease.release()
                self.note = f"the vector index does not open ({error}); searched without it"
                return None
            return pointer, self._open[1]
        return None

    def _lag(self) -> int:
        return self._store.vectors.last(self._embedder) - (self._open[0].last if self._open else 0)

    def _try_update(self) -> None:
        """Mend the index if nobody else is at it; a search does without rather than wait or fail."""
        try:
            self.update(timeout_s=0)
        except (ChromaStoreError, KernelScientistError, OSError) as error:
            self.note = f"the vector index was not brought up to date ({error})"


def combined(
    store: Store,
    embedder: str,
    vector: NDArray[np.float32],
    near: list[tuple[int, float]],
    last: int,
    limit: int,
    documents: set[str] | None,
) -> list[int]:
    """Chunks, nearest first, of an index's answer `near` and of the store's vectors above `last`.

    What the store no longer has is left out.
    """
    known = store.vectors.chunks_of([number for number, _ in near])
    scored = [(distance, known[number]) for number, distance in near if number in known]
    numbers, chunks, _, rows = store.vectors.of(embedder, after=last, documents=documents)
    if numbers:
        scored += zip((1.0 - rows @ vector).tolist(), chunks, strict=True)
    return [chunk for _, chunk in sorted(scored)[:limit]]
