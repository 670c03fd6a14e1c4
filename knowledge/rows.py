"""Documents and chunks as rows: how they are written, and how they are read back."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .chunking import Chunk, embedded_text, without_marks
from .identifiers import canonical, find_identifiers, split_parts
from .languages import MARKERS_COLUMN, language_of
from .loaders import LoadedDocument
from .records import Citation, Document, DocumentKind, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CHUNK_COLUMNS",
    "DOCUMENT_COLUMNS",
    "StoredChunk",
    "delete_document",
    "free_id",
    "insert_chunk",
    "insert_document",
    "insert_vector",
    "to_chunk",
    "to_document",
]

DOCUMENT_COLUMNS = (
    "id, title, kind, source, added_at, tags, architectures, bundled, "
    "(SELECT count(*) FROM chunks WHERE document_id = documents.id), authors, year, origin, "
    f"{MARKERS_COLUMN}"
)
CHUNK_COLUMNS = (
    "number, document_id, position, section, page, text, tokens, title, kind, coalesce(origin, source), "
    "authors, year"
)
_ID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with what its citation needs."""

    number: int
    id: str
    document_id: str
    kind: DocumentKind
    text: str
    tokens: int
    citation: Citation


def to_document(row: Sequence[Any]) -> Document:
    """From `DOCUMENT_COLUMNS`."""
    document_id, title, kind, source, added_at, tags, architectures, bundled, chunks = row[:9]
    authors, year, origin, marker = row[9:]
    return Document(
        id=document_id,
        title=title,
        kind=kind,
        source=source,
        chunks=chunks,
        added_at=datetime.fromisoformat(added_at),
        tags=tuple(json.loads(tags)),
        architectures=tuple(json.loads(architectures)),
        bundled=bool(bundled),
        authors=tuple(json.loads(authors)),
        year=year,
        origin=origin,
        language=language_of(source, marker),
    )


def to_chunk(row: Sequence[Any], sources: tuple[Source, ...]) -> StoredChunk:
    """From `CHUNK_COLUMNS` and the chunk's own sources."""
    number, document_id, position, section, page, text, tokens, title, kind, file, authors, year = row
    looked_up = min((source.looked_up for source in sources if source.looked_up), default=None)
    urls = " ".join(dict.fromkeys(source.url for source in sources))
    citation = Citation(
        title, section, page, urls or file, looked_up, sources, tuple(json.loads(authors)), year
    )
    return StoredChunk(number, f"{document_id}#{position}", document_id, kind, text, tokens, citation)


def free_id(connection: sqlite3.Connection, name: str) -> str:
    """A short readable id made of `name` that no document has."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_ID_LENGTH].strip("-") or "document"
    taken = {row[0] for row in connection.execute("SELECT id FROM documents WHERE id GLOB ?", (f"{stem}*",))}
    count = 2
    candidate = stem
    while candidate in taken:
        candidate = f"{stem}-{count}"
        count += 1
    return candidate


def insert_document(
    connection: sqlite3.Connection,
    document_id: str,
    source: str,
    document: LoadedDocument,
    tags: tuple[str, ...],
    content_hash: str,
    bundled: bool,
) -> None:
    """Write the document's own row, added now."""
    connection.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(document_id, source, document.title, document.kind, content_hash),
            datetime.now(UTC).isoformat(timespec="seconds"),
            *(json.dumps(tags), json.dumps(document.architectures), int(bundled)),
            *(json.dumps(document.authors), document.year, document.origin),
        ),
    )


def insert_chunk(
    connection: sqlite3.Connection,
    document_id: str,
    position: int,
    title: str,
    tags: tuple[str, ...],
    chunk: Chunk,
) -> int:
    """Write a chunk, its citations and its lexical entries; returns its number."""
    cursor = connection.execute(
        "INSERT INTO chunks (document_id, position, section, page, text, embedded, tokens) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            document_id,
            position,
            chunk.section,
            chunk.page,
            chunk.text,
            embedded_text(title, chunk),
            chunk.tokens,
        ),
    )
    number = cursor.lastrowid
    assert number is not None
    connection.executemany(
        "INSERT INTO citations VALUES (?, ?, ?, ?, ?, ?)",
        [(number, i, s.id, s.title, s.url, s.looked_up) for i, s in enumerate(chunk.sources)],
    )
    heading = f"{title} {chunk.section} {' '.join(tags)}"
    body = without_marks(chunk.text, chunk.sources)
    names = find_identifiers(f"{heading}\n{body}")
    # A part that FTS5's own tokeniser would not find: what stands between capitals, and numbers of a shape.
    parts = " ".join(part for name in names for part in split_parts(name))
    connection.execute(
        "INSERT INTO words (rowid, heading, body) VALUES (?, ?, ?)", (number, heading, f"{body}\n{parts}")
    )
    forms = " ".join(dict.fromkeys(form for name in names for form in canonical(name)))
    connection.execute("INSERT INTO identifiers (rowid, names) VALUES (?, ?)", (number, forms))
    return number


def insert_vector(
    connection: sqlite3.Connection, chunk: int, embedder: str, row: NDArray[np.float32]
) -> None:
    """Write a chunk's vector, unless it has one of this embedder."""
    connection.execute(
        "INSERT OR IGNORE INTO vectors (chunk, embedder, vector) VALUES (?, ?, ?)",
        (chunk, embedder, row.astype("<f4").tobytes()),
    )


def delete_document(connection: sqlite3.Connection, document_id: str) -> None:
    """Delete a document and all that hangs on it; FTS5 tables know no foreign keys."""
    for table in ("words", "identifiers"):
        connection.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT number FROM chunks WHERE document_id = ?)",
            (document_id,),
        )
    connection.execute("DELETE FROM documents WHERE id = ?", (document_id,))
