"""Keeping a knowledge base in order: its bundled notes, its sizes, and the repair of damage."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kernel_scientist.sandbox.files import FileLock, explained

from .database import DamagedError
from .embedding import Embedder
from .index import Index
from .library import is_current, sync_library
from .records import KnowledgeStatus
from .salvage import Salvaged, salvage
from .store import Store

__all__ = ["bring_library_up_to_date", "repair_database", "status_of"]

_LIBRARY_WAIT_S = 300.0


def bring_library_up_to_date(store: Store, embedder: Embedder) -> None:
    """Make the bundled documents those of the package; one process does, and others wait for it."""
    if is_current(store):
        return
    folder = store.path.parent
    lock = FileLock(folder / "library.lock", timeout_s=_LIBRARY_WAIT_S, purpose="adding the bundled library")
    with explained("add the bundled library", folder), lock:
        # Another process may have done it while this one waited.
        if not is_current(store):
            sync_library(store, embedder)


def status_of(store: Store, index: Index, embedder: str) -> KnowledgeStatus:
    """Sizes, whether the index keeps up, and whether the database is whole, which is looked at."""
    documents, chunks, _ = store.counts(embedder)
    indexed, waiting = index.state()
    folder = store.path.parent
    return KnowledgeStatus(
        *(str(folder), documents, chunks, embedder, indexed, waiting),
        note=index.note,
        bundled=len(store.documents("bundled")),
        experience=len(store.documents("kind = 'experience'")),
        vectors=store.vectors.embedders(),
        size_bytes=_size(folder),
        damage=store.damage(),
        index=index.place,
    )


def repair_database(path: Path) -> Salvaged | None:
    """Save what can be read of a damaged database; ``None`` when the one at `path` is whole or absent."""
    if not path.exists():
        return None
    try:
        with contextlib.closing(Store(path)) as store:
            if not store.damage():
                return None
    except DamagedError:
        pass
    return salvage(path)


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        # Another process may replace a version of the index meanwhile.
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total
