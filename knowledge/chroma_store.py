"""One Chroma store on disk, as plainly as it is used here. Only this and
`check_store` import chromadb.

A store is written once, in a folder nobody reads yet, and afterwards only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ChromaStore", "ChromaStoreError"]

_COLLECTION = "passages"
# Chroma refuses more than 5,461 rows at once; every batch rewrites the index files, so few large ones.
_BATCH = 5000
# Chroma keeps up to this many rows in its log only, and a reader that finds more of them writes the index
# itself.
_SYNC_THRESHOLD = 2


class ChromaStoreError(Exception):
    """Chroma could not do what was asked; its store is to be made again."""


@final
class ChromaStore:
    """Vectors under their numbers, each with the id of its document."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.folder = folder
        with _Guard():
            self._client = _client(folder)
            try:
                self._collection: Any = self._make() if create else self._get()
            except BaseException:
                self._client.close()
                raise

    def _make(self) -> Any:
        return self._client.create_collection(
            _COLLECTION,
            embedding_function=None,  # the default one downloads a model
            configuration={"hnsw": {"space": "cosine", "sync_threshold": _SYNC_THRESHOLD}},
        )

    def _get(self) -> Any:
        return self._client.get_collection(_COLLECTION, embedding_function=None)

    def close(self) -> None:
        with _Guard():
            self._client.close()

    def count(self) -> int:
        with _Guard():
            return int(self._collection.count())

    def numbers(self) -> set[int]:
        """All the vectors' numbers."""
        with _Guard():
            return {int(id) for id in self._collection.get(include=[])["ids"]}

    def add(self, numbers: Sequence[int], documents: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add vectors, a row for each number."""
        with _Guard():
            for part in _parts(len(numbers)):
                self._collection.add(
                    ids=[str(number) for number in numbers[part]],
                    embeddings=vectors[part],
                    metadatas=[{"document": document} for document in documents[part]],
                )

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete vectors by their numbers."""
        with _Guard():
            for part in _parts(len(numbers)):
                self._collection.delete(ids=[str(number) for number in numbers[part]])

    def query(
        self, vector: NDArray[np.float32], limit: int, documents: set[str] | None
    ) -> list[tuple[int, float]]:
        """The nearest vectors' numbers and cosine distances, nearest first; only of `documents` if given."""
        if documents is not None and not documents:
            return []
        where = None if documents is None else {"document": {"$in": sorted(documents)}}
        with _Guard():
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=limit, where=where, include=["distances"]
            )
            return [(int(i), float(d)) for i, d in zip(found["ids"][0], found["distances"][0], strict=True)]


def _client(folder: Path) -> Any:
    # Imported here: it takes the better part of a second.
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))


class _Guard:
    """Turns whatever Chroma raises into `ChromaStoreError`: its errors are of many types, and a panic of its
    Rust part is not even an `Exception`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(
            error, ChromaStoreError | KeyboardInterrupt | SystemExit | MemoryError
        ):
            return
        raise ChromaStoreError(f"{type(error).__name__}: {str(error)[:200]}") from error


def _parts(length: int) -> Iterator[slice]:
    return (slice(start, start + _BATCH) for start in range(0, length, _BATCH))
