"""What could not be added, remembered in the store so that it can be tried again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.printable import printable

from .database import Database
from .records import Failure
from .sources import Wanted

__all__ = ["Failures"]


@final
class Failures:
    """The table of failures, one for each source."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, wanted: Wanted, reason: str) -> None:
        """Remember why `wanted` could not be added, and how it was to be."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._database.changing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)",
                (wanted.source, reason, wanted.to_json(), now),
            )

    def forget(self, source: str) -> None:
        if self._database.row("SELECT 1 FROM failures WHERE source = ?", source):
            with self._database.changing() as connection:
                connection.execute("DELETE FROM failures WHERE source = ?", (source,))

    def all(self) -> list[Failure]:
        """Oldest first."""
        rows = self._database.rows("SELECT source, reason, tried FROM failures ORDER BY tried, source")
        return [Failure(*row) for row in rows]

    def wanted(self, sources: Sequence[str]) -> list[Wanted]:
        """How these sources were to be added, or all that failed when none is named. Raises `UsageError`."""
        rows = self._database.rows("SELECT source, wanted FROM failures ORDER BY tried, source")
        known = {source: Wanted.from_json(source, text) for source, text in rows}
        for source in sources:
            if source not in known:
                raise UsageError(
                    f"'{printable(source, ' ')}' is not among what failed; "
                    "'kernel-scientist knowledge retry --list' names it all."
                )
        return [known[source] for source in sources or known]
