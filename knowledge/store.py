"""The SQLite truth: documents, chunks, citations, vectors and words, changed together or not at all."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from .chunking import Chunk
from .database import Database, explain, is_damage, transaction
from .failures import Failures
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
from .vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Store", "StoredChunk"]


@final
class Store:
    """One open database, for one thread at a time. Its errors are sentences (see `database.explain`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path)
        self.vectors = Vectors(self._database)
        self.failures = Failures(self._database)

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """All changes of the block or none of them."""
        with self._database.changing():
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
        with self._database.changing() as connection:
            old = self._database.row("SELECT id FROM documents WHERE source = ?", source)
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
        with self._database.changing() as connection:
            document_id = free_id(connection, str(document["id"]))
            restore_document(connection, {**document, "id": document_id}, chunks)
        return document_id

    def remove(self, document_id: str) -> None:
        """Forget a document with all its chunks."""
        with self._database.changing() as connection:
            delete_document(connection, document_id)

    def retag(self, document_id: str, tags: tuple[str, ...]) -> None:
        """Replace a document's tags."""
        with self._database.changing() as connection:
            connection.execute("UPDATE documents SET tags = ? WHERE id = ?", (json.dumps(tags), document_id))

    def set_meta(self, key: str, value: str) -> None:
        with self._database.changing() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def meta(self, key: str) -> str | None:
        row = self._database.row("SELECT value FROM meta WHERE key = ?", key)
        return None if row is None else str(row[0])

    def identity(self) -> str:
        """A name that no other database has, given to it once."""
        with self._database.changing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (uuid.uuid4().hex,))
        found = self.meta("identity")
        assert found is not None
        return found

    def documents(self, where: str = "TRUE", *values: str) -> list[Document]:
        """Documents in the order they were added; `where` is SQL over the table's columns."""
        query = f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE {where} ORDER BY rowid"
        return [to_document(row) for row in self._database.rows(query, *values)]

    def content_hash(self, document_id: str) -> str | None:
        row = self._database.row("SELECT content_hash FROM documents WHERE id = ?", document_id)
        return None if row is None else str(row[0])

    def chunks(self, numbers: Iterable[int]) -> dict[int, StoredChunk]:
        """Those of the chunks that (still) exist, by number."""
        wanted = list(numbers)
        cited = self._citations(wanted)
        rows = self._database.rows_of(
            f"SELECT {CHUNK_COLUMNS} FROM chunks JOIN documents ON id = document_id WHERE number IN ({{}})",
            wanted,
        )
        return {row[0]: to_chunk(row, cited.get(row[0], ())) for row in rows}

    def chunk_number(self, document_id: str, position: int) -> int | None:
        row = self._database.row(
            "SELECT number FROM chunks WHERE document_id = ? AND position = ?", document_id, position
        )
        return None if row is None else int(row[0])

    def chunk_numbers(self, document_id: str) -> list[int]:
        """Numbers of a document's chunks in reading order."""
        statement = "SELECT number FROM chunks WHERE document_id = ? ORDER BY position"
        return [row[0] for row in self._database.rows(statement, document_id)]

    def damage(self) -> str:
        """What SQLite's own check finds wrong, in a few words; empty when nothing is."""
        connection = self._database.connection
        try:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
            for table in ("words", "identifiers"):
                # Not `changing`, which explains: here damage is the answer.
                with transaction(connection):
                    connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise explain(error, self.path) from error
            found = str(error)
        return "" if found == "ok" else found

    def counts(self, embedder: str) -> tuple[int, int, int]:
        """How many documents, chunks and vectors of `embedder` there are."""
        row = self._database.row(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), "
            "(SELECT count(*) FROM vectors WHERE embedder = ?)",
            embedder,
        )
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])

    def match(
        self, table: Literal["words", "identifiers"], query: str, limit: int, documents: set[str] | None
    ) -> list[tuple[int, float]]:
        """Chunk numbers that match an FTS5 query with their BM25 scores (the higher the better), best first.

        Only those of `documents` if given.
        """
        # Headings count double.
        rank = "bm25(2.0, 1.0)" if table == "words" else "bm25()"
        statement, values = f"SELECT {table}.rowid, {table}.rank FROM {table}", [query]
        where = f"WHERE {table} MATCH ? AND rank MATCH '{rank}'"
        if documents is not None:
            statement += f" JOIN chunks ON number = {table}.rowid"
            where += " AND document_id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(sorted(documents)))
        rows = self._database.rows(f"{statement} {where} ORDER BY rank LIMIT ?", *values, limit)
        return sorted(((row[0], -row[1]) for row in rows), key=lambda found: (-found[1], found[0]))

    def holders(self, word: str, most: int) -> int:
        """How many chunks match an FTS5 expression of words, counted no further than `most`."""
        row = self._database.row(
            "SELECT count(*) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)", word, most
        )
        return int(row[0]) if row else 0

    def occurrences(self, identifier: str) -> int:
        """How many chunks hold `identifier` (a canonical form)."""
        row = self._database.row(
            "SELECT count(*) FROM identifiers WHERE identifiers MATCH ?", f'"{identifier}"'
        )
        return int(row[0]) if row else 0

    def _citations(self, numbers: Sequence[int]) -> dict[int, tuple[Source, ...]]:
        found: dict[int, tuple[Source, ...]] = {}
        rows = self._database.rows_of(
            "SELECT chunk, mark, title, url, looked_up FROM citations WHERE chunk IN ({}) "
            "ORDER BY chunk, position",
            numbers,
        )
        for chunk, mark, title, url, looked_up in rows:
            found[chunk] = (*found.get(chunk, ()), Source(mark, title, url, looked_up))
        return found
