"""Documents that were stored before, written as they were: when a database is repaired, and on import."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from .chunking import Chunk
from .rows import insert_chunk

__all__ = ["restore_document"]


def restore_document(
    connection: sqlite3.Connection,
    document: Mapping[str, Any],
    chunks: Iterable[tuple[int, Chunk, Iterable[tuple[str, bytes]]]],
) -> None:
    """Write a document's row, of which columns that are not known are left out, and its chunks.

    Each chunk comes with its position and with embedders and vectors. Lexical entries are made anew.
    """
    columns = [row[1] for row in connection.execute("PRAGMA table_info(documents)") if row[1] in document]
    marks = ", ".join("?" * len(columns))
    connection.execute(
        f"INSERT INTO documents ({', '.join(columns)}) VALUES ({marks})", [document[name] for name in columns]
    )
    tags = tuple(json.loads(document["tags"]))
    for position, chunk, vectors in chunks:
        number = insert_chunk(connection, document["id"], position, document["title"], tags, chunk)
        connection.executemany(
            "INSERT OR IGNORE INTO vectors (chunk, embedder, vector) VALUES (?, ?, ?)",
            [(number, embedder, vector) for embedder, vector in vectors],
        )
