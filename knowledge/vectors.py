"""The vectors of the store's chunks, of any number of embedding models side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from .database import Database
from .rows import insert_vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Vectors"]


@final
class Vectors:
    """The table of vectors. Their numbers grow and are never used again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, embedder: str, chunks: Sequence[int], rows: NDArray[np.float32]) -> None:
        """Store vectors of chunks; a chunk that was removed meanwhile, or has one, is passed over."""
        with self._database.changing() as connection:
            for chunk, row in zip(chunks, rows, strict=True):
                if self._database.row("SELECT 1 FROM chunks WHERE number = ?", chunk):
                    insert_vector(connection, chunk, embedder, row)

    def embedders(self) -> dict[str, int]:
        """How many vectors there are of each embedder."""
        return dict(self._database.rows("SELECT embedder, count(*) FROM vectors GROUP BY embedder"))

    def of(
        self, embedder: str, *, after: int = 0, documents: set[str] | None = None, limit: int = -1
    ) -> tuple[list[int], list[int], list[str], NDArray[np.float32]]:
        """Numbers, chunks, documents and rows of the vectors numbered above `after`, in that order."""
        import numpy as np

        only, values = "", list[str]()
        if documents is not None:
            only = "AND document_id IN (SELECT value FROM json_each(?))"
            values = [json.dumps(sorted(documents))]
        rows = self._database.rows(
            "SELECT vectors.number, chunk, document_id, vector "
            "FROM vectors JOIN chunks ON chunks.number = chunk "
            f"WHERE embedder = ? AND vectors.number > ? {only} ORDER BY vectors.number LIMIT ?",
            embedder,
            after,
            *values,
            limit,
        )
        raw = b"".join(row[3] for row in rows)
        matrix = np.frombuffer(raw, dtype="<f4").reshape(len(rows), -1 if rows else 0)
        return (
            [r[0] for r in rows],
            [r[1] for r in rows],
            [r[2] for r in rows],
            matrix.astype(np.float32, copy=False),
        )

    def of_chunks(self, embedder: str, chunks: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Those of the chunks that have a vector of `embedder`, and their rows."""
        import numpy as np

        found = list(
            self._database.rows_of(
                "SELECT chunk, vector, embedder FROM vectors WHERE chunk IN ({})", list(chunks)
            )
        )
        own = [row for row in found if row[2] == embedder]
        matrix = np.frombuffer(b"".join(row[1] for row in own), "<f4").reshape(len(own), -1 if own else 0)
        return [row[0] for row in own], matrix.astype(np.float32, copy=False)

    def numbers(self, embedder: str) -> set[int]:
        rows = self._database.rows("SELECT number FROM vectors WHERE embedder = ?", embedder)
        return {row[0] for row in rows}

    def last(self, embedder: str) -> int:
        """The highest number of a vector of `embedder`, 0 when there is none."""
        row = self._database.row("SELECT max(number) FROM vectors WHERE embedder = ?", embedder)
        return int(row[0] or 0) if row else 0

    def chunks_of(self, numbers: Sequence[int]) -> dict[int, int]:
        """The chunk of each vector that still exists."""
        return dict(self._database.rows_of("SELECT number, chunk FROM vectors WHERE number IN ({})", numbers))

    def dimensions(self, embedder: str) -> int | None:
        """How many numbers a vector of `embedder` has; ``None`` when there is none."""
        row = self._database.row(
            "SELECT length(vector) / 4 FROM vectors WHERE embedder = ? LIMIT 1", embedder
        )
        return None if row is None else int(row[0])

    def example(self, embedder: str) -> tuple[str, NDArray[np.float32]] | None:
        """The text and the vector of one chunk, if there is one."""
        import numpy as np

        row = self._database.row(
            "SELECT embedded, vector FROM vectors JOIN chunks ON chunks.number = chunk "
            "WHERE embedder = ? ORDER BY vectors.number LIMIT 1",
            embedder,
        )
        return None if row is None else (str(row[0]), np.frombuffer(row[1], "<f4").astype(np.float32))

    def forget(self, embedder: str) -> None:
        """Delete all vectors of `embedder`."""
        with self._database.changing() as connection:
            connection.execute("DELETE FROM vectors WHERE embedder = ?", (embedder,))

    def missing(self, embedder: str) -> list[tuple[int, str]]:
        """Number and embedded text of the chunks that `embedder` has not embedded."""
        rows = self._database.rows(
            "SELECT number, embedded FROM chunks WHERE number NOT IN "
            "(SELECT chunk FROM vectors WHERE embedder = ?) ORDER BY number",
            embedder,
        )
        return [(row[0], row[1]) for row in rows]
