"""Saving what can be read of a damaged database into a new one; the damaged file is kept beside it.

Covered: pages of any table or index that are overwritten or cut off, and damage in the lexical tables alone,
which are made anew. Rows are read from both ends of a table, so one bad page costs what is on it. Not
covered: a change of a text's bytes that leaves SQLite's own structure whole, which nothing here can notice.
"""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_scientist.sandbox.files import FileLock, explained

from .chunking import Chunk
from .database import connect, explained_database, transaction
from .records import Source
from .restoring import restore_document

__all__ = ["Salvaged", "salvage"]

_WAIT_S = 60.0
_POSITIONS = "SELECT document_id, max(position) FROM chunks GROUP BY document_id"


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came of it: how many documents are whole, the sources of those that are not, the damaged file."""

    documents: int
    lost: tuple[str, ...]
    damaged: str


def salvage(path: Path) -> Salvaged:
    """Replace the damaged database at `path` by a new one with all documents that can be read as a whole.

    No other process should have it open. Bundled notes are left out: opening the base adds them again.
    """
    folder = path.parent
    fresh = folder / f"{path.name}.new"
    with (
        explained("repair the knowledge base", folder),
        FileLock(folder / "repair.lock", timeout_s=_WAIT_S, purpose="repairing the knowledge base"),
    ):
        _delete(fresh)
        rows = _Rows(path)
        with explained_database(fresh), contextlib.closing(connect(fresh)) as connection:
            kept, lost = _write(connection, rows)
            connection.execute("PRAGMA journal_mode = DELETE")  # leaves one file, which can be renamed
        damaged = folder / f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        for ending in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{ending}").rename(f"{damaged}{ending}")
        fresh.rename(path)
    return Salvaged(kept, lost, str(damaged))


class _Rows:
    """Whatever rows of a damaged database can be read."""

    def __init__(self, path: Path) -> None:
        self.documents: list[dict[str, Any]] = []
        self.chunks: dict[str, dict[int, dict[str, Any]]] = {}
        self.expected: dict[str, int] = {}
        self.sources: dict[int, dict[int, Source]] = {}
        self.vectors: list[dict[str, Any]] = []
        self.doubtful = False
        try:
            connection = sqlite3.connect(path)
        except sqlite3.DatabaseError:
            return
        with contextlib.closing(connection):
            self._read(connection)

    def _read(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        self.documents, _ = _table(connection, "documents", "rowid")
        chunks, _ = _table(connection, "chunks", "number")
        for chunk in chunks:
            self.chunks.setdefault(str(chunk["document_id"]), {})[int(chunk["position"])] = chunk
        # The index by document is of other pages than the table, and knows of rows that the table has lost.
        with contextlib.suppress(sqlite3.DatabaseError):
            self.expected = {str(row[0]): int(row[1]) for row in connection.execute(_POSITIONS)}
        cited, whole = _table(connection, "citations", "chunk")
        self.doubtful = not whole
        for row in cited:
            source = Source(row["mark"], row["title"], row["url"], row["looked_up"])
            self.sources.setdefault(int(row["chunk"]), {})[int(row["position"])] = source
        self.vectors, _ = _table(connection, "vectors", "number")

    def is_whole(self, document_id: str) -> bool:
        positions = self.chunks.get(document_id, {})
        last = max([self.expected.get(document_id, 0), *positions])
        return bool(positions) and len(positions) == last

    def unknown(self) -> set[str]:
        """Ids of documents of which there are chunks but no row that says what they are."""
        return (self.chunks.keys() | self.expected.keys()) - {str(row["id"]) for row in self.documents}


def _table(connection: sqlite3.Connection, table: str, key: str) -> tuple[list[dict[str, Any]], bool]:
    """The rows that can be read from either end, and whether those are all."""
    found: dict[Any, dict[str, Any]] = {}
    for order in ("ASC", "DESC"):
        try:
            columns = f"{key} AS salvage_key, *" if key == "rowid" else "*"
            for row in connection.execute(f"SELECT {columns} FROM {table} ORDER BY {key} {order}"):
                values = dict(row)
                found[(values.pop("salvage_key", values.get(key)), values.get("position"))] = values
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            continue
        return list(found.values()), True
    return [found[one] for one in sorted(found, key=str)], False


def _write(connection: sqlite3.Connection, rows: _Rows) -> tuple[int, tuple[str, ...]]:
    """Write the whole documents into the new database; returns how many, and the sources of the others."""
    lost = [f"(unknown, with the id {one})" for one in sorted(rows.unknown())]
    vectors: dict[int, list[dict[str, Any]]] = {}
    for vector in rows.vectors:
        vectors.setdefault(int(vector["chunk"]), []).append(vector)
    kept = 0
    for row in rows.documents:
        if row["bundled"]:
            continue
        if not rows.is_whole(str(row["id"])):
            lost.append(str(row["source"]))
            continue
        try:
            with transaction(connection):
                _write_document(connection, row, rows, vectors)
        except (sqlite3.IntegrityError, KeyError, TypeError, ValueError):  # rows that make no sense together
            lost.append(str(row["source"]))
        else:
            kept += 1
            if rows.doubtful:
                lost.append(f"{row['source']} (kept, but some of its citations may be missing)")
    return kept, tuple(lost)


def _write_document(
    connection: sqlite3.Connection,
    row: dict[str, Any],
    rows: _Rows,
    vectors: dict[int, list[dict[str, Any]]],
) -> None:
    chunks: list[tuple[int, Chunk, list[tuple[str, bytes]]]] = []
    for position, old in sorted(rows.chunks[row["id"]].items()):
        number = int(old["number"])
        sources = tuple(one for _, one in sorted(rows.sources.get(number, {}).items()))
        chunk = Chunk(old["section"], old["text"], old["page"], int(old["tokens"]), sources)
        chunks.append(
            (position, chunk, [(one["embedder"], one["vector"]) for one in vectors.get(number, [])])
        )
    restore_document(connection, row, chunks)


def _delete(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
