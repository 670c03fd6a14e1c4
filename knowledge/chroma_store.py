"""One Chroma collection, on disk or on a server, as plainly as it is used here. Only this and `check_store`
import chromadb.

One on disk is written once, in a folder nobody reads yet, and afterwards only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
_SERVER_TIMEOUT_S = 60.0


class ChromaStoreError(Exception):
    """Chroma could not do what was asked; its store is to be made again."""


@final
class ChromaStore:
    """Vectors under their numbers, each with the id of its document."""

    def __init__(self, client: Any, collect: Callable[[Any], Any]) -> None:
        self._client = client
        try:
            self._collection: Any = collect(client)
        except BaseException:
            _close(client)
            raise

    @classmethod
    def in_folder(cls, folder: Path, *, create: bool = False) -> ChromaStore:
        """The collection in a folder of its own."""

        def collect(client: Any) -> Any:
            if not create:
                return client.get_collection(_COLLECTION, embedding_function=None)
            return client.create_collection(
                _COLLECTION,
                embedding_function=None,  # the default one downloads a model
                configuration={"hnsw": {"space": "cosine", "sync_threshold": _SYNC_THRESHOLD}},
            )

        with _Guard():
            # Imported here: it takes the better part of a second.
            import chromadb

            return cls(chromadb.PersistentClient(path=str(folder), settings=_settings()), collect)

    @classmethod
    def on_server(cls, host: str, port: int, secure: bool, name: str) -> ChromaStore:
        """The collection of that name on a server, made when missing."""

        def collect(client: Any) -> Any:
            # The client waits for ever by default, and offers no other way to say otherwise.
            client._server._session.timeout = _SERVER_TIMEOUT_S
            return client.get_or_create_collection(
                name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )

        with _Guard():
            import chromadb

            return cls(chromadb.HttpClient(host=host, port=port, ssl=secure, settings=_settings()), collect)

    def close(self) -> None:
        with _Guard():
            _close(self._client)

    def count(self) -> int:
        with _Guard():
            return int(self._collection.count())

    def numbers(self) -> set[int]:
        """All the vectors' numbers."""
        with _Guard():
            return {int(id) for id in self._collection.get(include=[])["ids"]}

    def add(self, numbers: Sequence[int], documents: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add vectors, a row for each number, in place of those there are of the same number."""
        with _Guard():
            for part in _parts(len(numbers)):
                self._collection.upsert(
                    ids=[str(number) for number in numbers[part]],
                    embeddings=vectors[part],
                    metadatas=[{"document": document} for document in documents[part]],
                )

    def last(self) -> int:
        """The number that `set_last` wrote, 0 before; as the collection has it now, whoever wrote it."""
        with _Guard():
            self._collection = self._client.get_collection(self._collection.name, embedding_function=None)
            metadata: Any = self._collection.metadata
            return int(metadata["last"]) if metadata and "last" in metadata else 0

    def set_last(self, number: int) -> None:
        """Write the highest number that the collection is known to hold with all below it."""
        with _Guard():
            self._collection.modify(metadata={"last": number})

    def empty(self) -> None:
        """Delete the collection with all vectors, and make it anew."""
        name = self._collection.name
        with _Guard():
            self._client.delete_collection(name)
            self._collection = self._client.create_collection(
                name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
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


def _close(client: Any) -> None:
    client.close()
    # The connections to a server are left to the garbage collector otherwise, those of the part that asked
    # for the database's name as well.
    for part in (client, client._admin_client):
        session = getattr(part._server, "_session", None)
        if session is not None:
            session.close()


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


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
