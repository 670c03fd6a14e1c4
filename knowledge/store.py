"""The SQLite truth: documents, chunks, citations, vectors and words, changed together or not at all."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, final

from .chunking import Chunk
from .database import connect, explain, explained_database, is_damage, transaction
from .loaders import LoadedDocument
from .records import Document, Source
from .restoring import restore_document
from .rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    StoredChunk,
    delete_document,
    free_id,
    insert_chunk,
    insert_document,
    insert_vector,
    to_chunk,
    to_document,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Store", "StoredChunk"]

# SQLite of before 3.32 takes 999 parameters in a statement.
_PARAMETERS = 900


@final
class Store:
    """One open database, for one thread at a time. Its errors are sentences (see `database.explain`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path)

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """All changes of the block or none of them."""
        with explained_database(self.path), transaction(self._connection):
            yield

    def put(
        self,
        source: str,
        document: LoadedDocument,
        chunks: Sequence[Chunk],
        *,
        content_hash: str,
        name: str,
        tags: tuple[str, ...],
        bundled: bool,
        embedder: str,
        vectors: NDArray[np.float32],
    ) -> tuple[Literal["added", "replaced"], str]:
        """Store a document in place of what `source` was before; `vectors` has a row for each chunk.

        When this returns the document is on disk. A replaced document keeps its id; a new one's is made of
        `name`.
        """
        connection = self._connection
        with explained_database(self.path), transaction(connection):
            old = self._row("SELECT id FROM documents WHERE source = ?", source)
            document_id = str(old[0]) if old else free_id(connection, name)
            if old:
                delete_document(connection, document_id)
            tags = tuple(dict.fromkeys((*document.tags, *tags)))
            insert_document(connection, document_id, source, document, tags, content_hash, bundled)
            for position, (chunk, row) in enumerate(zip(chunks, vectors, strict=True), 1):
                number = insert_chunk(connection, document_id, position, document.title, tags, chunk)
                insert_vector(connection, number, embedder, row)
        return ("replaced" if old else "added"), document_id

    def restore(
        self,
        document: Mapping[str, Any],
        chunks: Iterable[tuple[int, Chunk, Iterable[tuple[str, bytes]]]],
    ) -> str:
        """Store a document as it was (see `restore_document`) under its id, or a free one like it."""
        with explained_database(self.path), transaction(self._connection):
            document_id = free_id(self._connection, str(document["id"]))
            restore_document(self._connection, {**document, "id": document_id}, chunks)
        return document_id

    def remove(self, document_id: str) -> None:
        """Forget a document with all its chunks."""
        with explained_database(self.path), transaction(self._connection):
            delete_document(self._connection, document_id)

    def retag(self, document_id: str, tags: tuple[str, ...]) -> None:
        """Replace a document's tags."""
        with explained_database(self.path), transaction(self._connection):
            self._connection.execute(
                "UPDATE documents SET tags = ? WHERE id = ?", (json.dumps(tags), document_id)
            )

    def add_vectors(self, embedder: str, numbers: Sequence[int], rows: NDArray[np.float32]) -> None:
        """Store vectors of chunks; a chunk that was removed meanwhile, or has one, is passed over."""
        with explained_database(self.path), transaction(self._connection):
            for number, row in zip(numbers, rows, strict=True):
                if self._row("SELECT 1 FROM chunks WHERE number = ?", number):
                    insert_vector(self._connection, number, embedder, row)

    def set_meta(self, key: str, value: str) -> None:
        with explained_database(self.path), transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def meta(self, key: str) -> str | None:
        with explained_database(self.path):
            row = self._row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else str(row[0])

    def note_failure(self, source: str, reason: str, wanted: str) -> None:
        """Remember that `source` could not be added, and as JSON how it was to be."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with explained_database(self.path), transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)", (source, reason, wanted, now)
            )

    def forget_failure(self, source: str) -> None:
        with explained_database(self.path):
            if self._row("SELECT 1 FROM failures WHERE source = ?", source):
                with transaction(self._connection):
                    self._connection.execute("DELETE FROM failures WHERE source = ?", (source,))

    def failures(self) -> list[tuple[str, str, str, str]]:
        """Source, reason, JSON of how it was to be added, and when it was tried, oldest first."""
        with explained_database(self.path):
            rows = self._connection.execute(
                "SELECT source, reason, wanted, tried FROM failures ORDER BY tried, source"
            )
            return [(row[0], row[1], row[2], row[3]) for row in rows]

    def identity(self) -> str:
        """A name that no other database has, given to it once."""
        with explained_database(self.path), transaction(self._connection):
            self._connection.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (uuid.uuid4().hex,))
        found = self.meta("identity")
        assert found is not None
        return found

    def documents(self, where: str = "TRUE", *values: str) -> list[Document]:
        """Documents in the order they were added; `where` is SQL over the table's columns."""
        query = f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE {where} ORDER BY rowid"
        with explained_database(self.path):
            return [to_document(row) for row in self._connection.execute(query, values)]

    def content_hash(self, document_id: str) -> str | None:
        with explained_database(self.path):
            row = self._row("SELECT content_hash FROM documents WHERE id = ?", document_id)
        return None if row is None else str(row[0])

    def chunks(self, numbers: Iterable[int]) -> dict[int, StoredChunk]:
        """Those of the chunks that (still) exist, by number."""
        found: dict[int, StoredChunk] = {}
        with explained_database(self.path):
            for some in _batches(list(numbers)):
                marks = ",".join("?" * len(some))
                cited = self._citations(some)
                rows = self._connection.execute(
                    f"SELECT {CHUNK_COLUMNS} FROM chunks JOIN documents ON id = document_id "
                    f"WHERE number IN ({marks})",
                    some,
                )
                found |= {row[0]: to_chunk(row, cited.get(row[0], ())) for row in rows}
        return found

    def chunk_number(self, document_id: str, position: int) -> int | None:
        with explained_database(self.path):
            row = self._row(
                "SELECT number FROM chunks WHERE document_id = ? AND position = ?", document_id, position
            )
        return None if row is None else int(row[0])

    def chunk_numbers(self, document_id: str) -> list[int]:
        """Numbers of a document's chunks in reading order."""
        statement = "SELECT number FROM chunks WHERE document_id = ? ORDER BY position"
        with explained_database(self.path):
            return [row[0] for row in self._connection.execute(statement, (document_id,))]

    def embedders(self) -> dict[str, int]:
        """How many vectors there are of each embedder."""
        with explained_database(self.path):
            return dict(self._connection.execute("SELECT embedder, count(*) FROM vectors GROUP BY embedder"))

    def damage(self) -> str:
        """What SQLite's own check finds wrong, in a few words; empty when nothing is."""
        try:
            found = str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
            for table in ("words", "identifiers"):
                with transaction(self._connection):
                    self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise explain(error, self.path) from error
            found = str(error)
        return "" if found == "ok" else found

    def counts(self, embedder: str) -> tuple[int, int, int]:
        """How many documents, chunks and vectors of `embedder` there are."""
        with explained_database(self.path):
            row = self._row(
                "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), "
                "(SELECT count(*) FROM vectors WHERE embedder = ?)",
                embedder,
            )
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])

    def match(
        self, table: Literal["words", "identifiers"], query: str, limit: int, documents: set[str] | None
    ) -> list[int]:
        """Chunk numbers that match an FTS5 query, best first by BM25; only those of `documents` if given."""
        weights = ", 2.0, 1.0" if table == "words" else ""
        only, values = "", []
        if documents is not None:
            only = "AND document_id IN (SELECT value FROM json_each(?))"
            values = [json.dumps(sorted(documents))]
        statement = (
            f"SELECT {table}.rowid FROM {table} JOIN chunks ON number = {table}.rowid "
            f"WHERE {table} MATCH ? {only} ORDER BY bm25({table}{weights}), number LIMIT ?"
        )
        with explained_database(self.path):
            return [row[0] for row in self._connection.execute(statement, (query, *values, limit))]

    def occurrences(self, identifier: str) -> int:
        """How many chunks hold `identifier` (a canonical form)."""
        with explained_database(self.path):
            row = self._row("SELECT count(*) FROM identifiers WHERE identifiers MATCH ?", f'"{identifier}"')
        return int(row[0]) if row else 0

    def vectors(
        self, embedder: str, *, after: int = 0, documents: set[str] | None = None, limit: int = -1
    ) -> tuple[list[int], list[int], list[str], NDArray[np.float32]]:
        """Numbers, chunks, documents and rows of the vectors numbered above `after`, in that order."""
        import numpy as np

        only, values = "", []
        if documents is not None:
            only = "AND document_id IN (SELECT value FROM json_each(?))"
            values = [json.dumps(sorted(documents))]
        statement = (
            "SELECT vectors.number, chunk, document_id, vector "
            "FROM vectors JOIN chunks ON chunks.number = chunk "
            f"WHERE embedder = ? AND vectors.number > ? {only} ORDER BY vectors.number LIMIT ?"
        )
        with explained_database(self.path):
            rows = self._connection.execute(statement, (embedder, after, *values, limit)).fetchall()
        raw = b"".join(row[3] for row in rows)
        matrix = np.frombuffer(raw, dtype="<f4").reshape(len(rows), -1 if rows else 0)
        return (
            [r[0] for r in rows],
            [r[1] for r in rows],
            [r[2] for r in rows],
            matrix.astype(np.float32, copy=False),
        )

    def vector_numbers(self, embedder: str) -> set[int]:
        with explained_database(self.path):
            rows = self._connection.execute("SELECT number FROM vectors WHERE embedder = ?", (embedder,))
            return {row[0] for row in rows}

    def last_vector(self, embedder: str) -> int:
        """The highest number of a vector of `embedder`, 0 when there is none."""
        with explained_database(self.path):
            row = self._row("SELECT max(number) FROM vectors WHERE embedder = ?", embedder)
        return int(row[0] or 0) if row else 0

    def chunks_of_vectors(self, numbers: Sequence[int]) -> dict[int, int]:
        """The chunk of each vector that still exists."""
        found: dict[int, int] = {}
        with explained_database(self.path):
            for some in _batches(list(numbers)):
                marks = ",".join("?" * len(some))
                rows = self._connection.execute(
                    f"SELECT number, chunk FROM vectors WHERE number IN ({marks})", some
                )
                found.update((row[0], row[1]) for row in rows)
        return found

    def without_vector(self, embedder: str) -> list[tuple[int, str]]:
        """Number and embedded text of the chunks that `embedder` has not embedded."""
        statement = (
            "SELECT number, embedded FROM chunks WHERE number NOT IN "
            "(SELECT chunk FROM vectors WHERE embedder = ?) ORDER BY number"
        )
        with explained_database(self.path):
            return [(row[0], row[1]) for row in self._connection.execute(statement, (embedder,))]

    def _row(self, statement: str, *values: str | int) -> tuple[Any, ...] | None:
        return cast("tuple[Any, ...] | None", self._connection.execute(statement, values).fetchone())

    def _citations(self, numbers: Sequence[int]) -> dict[int, tuple[Source, ...]]:
        marks = ",".join("?" * len(numbers))
        rows = self._connection.execute(
            f"SELECT chunk, mark, title, url, looked_up FROM citations WHERE chunk IN ({marks}) "
            "ORDER BY chunk, position",
            list(numbers),
        )
        found: dict[int, tuple[Source, ...]] = {}
        for chunk, mark, title, url, looked_up in rows:
            found[chunk] = (*found.get(chunk, ()), Source(mark, title, url, looked_up))
        return found


def _batches(numbers: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(numbers), _PARAMETERS):
        yield numbers[start : start + _PARAMETERS]
