"""The bundled library: notes that come with the package, and their vectors, computed beforehand.

The vectors only save time: embedding the notes takes seconds, and every fresh knowledge base would pay them.
A note that changed is embedded when it is read. After editing notes run `precompute`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from kernel_scientist.sandbox.errors import InternalError

from .adding import put_file
from .chunking import chunk, embedded_text
from .embedding import Embedder
from .loaders import LoadError, load
from .store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["is_current", "library_hash", "library_notes", "missing_vectors", "sync_library", "write_vectors"]

_FOLDER = Path(__file__).parent / "library"
_VECTORS = Path(__file__).parent / "data" / "library_vectors.npz"
_SOURCE_PREFIX = "library:"
_META_KEY = "library"


def library_notes() -> list[Path]:
    """The bundled notes by name."""
    return sorted(_FOLDER.glob("*.md"))


def library_hash(notes: Sequence[Path]) -> str:
    """A hash of the notes' names and content."""
    digest = hashlib.sha256()
    for note in notes:
        raw = note.read_bytes()
        digest.update(f"{note.name} {len(raw)}\n".encode())
        digest.update(raw)
    return digest.hexdigest()


def is_current(store: Store) -> bool:
    """Whether the store holds the notes as they are now."""
    return store.meta(_META_KEY) == library_hash(library_notes())


def sync_library(store: Store, embedder: Embedder) -> None:
    """Make the store's bundled documents those of the package, all or none: a full disk leaves no half of
    them. Raises `InternalError` for a broken note."""
    with store.together():
        _sync(store, _Precomputed(embedder), library_notes())


def _sync(store: Store, known: Embedder, notes: Sequence[Path]) -> None:
    for note in notes:
        try:
            put_file(store, known, note, source=f"{_SOURCE_PREFIX}{note.name}", bundled=True)
        except LoadError as error:
            raise InternalError(f"The bundled note {note.name} cannot be added: {error}.") from error
    sources = {f"{_SOURCE_PREFIX}{note.name}" for note in notes}
    for document in store.documents("bundled"):
        if document.source not in sources:
            store.remove(document.id)
    store.set_meta(_META_KEY, library_hash(notes))


def write_vectors(embedder: Embedder) -> int:
    """Compute the vectors of all notes anew and write them beside the package's data; returns how many."""
    import numpy as np

    texts = _library_texts()
    keys = np.array([_key(text) for text in texts])
    vectors = embedder.embed(texts).astype(np.float16)
    np.savez_compressed(_VECTORS, embedder=np.array(embedder.name), keys=keys, vectors=vectors)
    _shipped.cache_clear()
    return len(texts)


def missing_vectors(embedder: Embedder) -> int:
    """How many passages of the notes have no vector of `embedder` in the package."""
    known = _shipped(embedder.name)
    return sum(_key(text) not in known for text in _library_texts())


@final
class _Precomputed:
    """`embedder`, with the vectors that ship with the package taken from there."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = embedder.name

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        known = _shipped(self.name)
        missing = [text for text in texts if _key(text) not in known]
        if len(missing) == len(texts):
            return self._embedder.embed(texts)
        fresh = iter(self._embedder.embed(missing)) if missing else iter(())
        rows = [known[_key(text)] if _key(text) in known else next(fresh) for text in texts]
        return np.stack(rows)


def _library_texts() -> list[str]:
    documents = [load(note)[1] for note in library_notes()]
    return [embedded_text(document.title, piece) for document in documents for piece in chunk(document)]


@functools.lru_cache(maxsize=2)
def _shipped(embedder: str) -> dict[str, NDArray[np.float32]]:
    import numpy as np

    if not _VECTORS.is_file():
        return {}
    with np.load(_VECTORS, allow_pickle=False) as file:
        if str(file["embedder"]) != embedder:
            return {}
        rows = file["vectors"].astype(np.float32)
        # Half precision leaves the length a little off 1, which cosine distances rely on.
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return dict(zip(file["keys"].tolist(), rows, strict=True))


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
