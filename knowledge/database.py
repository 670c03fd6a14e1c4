"""Opening the SQLite file, and its errors as sentences."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast, final

from kernel_scientist.sandbox.errors import KernelScientistError, UnusableEnvironment, UsageError
from kernel_scientist.sandbox.files import explained, is_own

__all__ = ["DamagedError", "Database", "connect", "explain", "explained_database", "is_damage", "transaction"]

_VERSION = 3
# SQLite of before 3.32 takes 999 parameters in a statement.
_PARAMETERS = 900
# What makes a database of a version into one of the next.
_MIGRATIONS = {
    1: (
        "ALTER TABLE documents ADD COLUMN authors TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE documents ADD COLUMN year INTEGER",
        "ALTER TABLE documents ADD COLUMN origin TEXT",
        "CREATE TABLE failures (source TEXT PRIMARY KEY, reason TEXT NOT NULL, wanted TEXT NOT NULL, "
        "tried TEXT NOT NULL) WITHOUT ROWID",
    ),
    # From here on the model is recorded that a base is embedded by.
    2: (
        "INSERT OR IGNORE INTO meta SELECT 'embedder', embedder FROM vectors "
        "GROUP BY embedder ORDER BY count(*) DESC, max(number) DESC LIMIT 1",
        "INSERT OR IGNORE INTO meta SELECT 'embedder_recipe', 'offline' FROM meta "
        "WHERE key = 'embedder' AND value LIKE 'all-MiniLM-L6-v2-onnx-int8%'",
    ),
}
_BUSY_S = 60.0


class DamagedError(UsageError):
    """The database file is damaged; `repairing.salvage` saves what can be read."""


@final
class Database:
    """One open database file, for one thread at a time. Its errors are sentences (see `explain`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = connect(path)

    def close(self) -> None:
        self.connection.close()

    @contextlib.contextmanager
    def changing(self) -> Generator[sqlite3.Connection]:
        """All changes of the block or none of them; see `transaction`."""
        with explained_database(self.path), transaction(self.connection):
            yield self.connection

    def rows(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        with explained_database(self.path):
            return self.connection.execute(statement, values).fetchall()

    def row(self, statement: str, *values: str | int) -> tuple[Any, ...] | None:
        """The first row, ``None`` when there is none."""
        with explained_database(self.path):
            found = self.connection.execute(statement, values).fetchone()
        return cast("tuple[Any, ...] | None", found)

    def rows_of(self, statement: str, numbers: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement with ``IN ({})``, for numbers that may be many."""
        for start in range(0, len(numbers), _PARAMETERS):
            some = numbers[start : start + _PARAMETERS]
            yield from self.rows(statement.format(",".join("?" * len(some))), *some)


def connect(path: Path) -> sqlite3.Connection:
    """Open the database at `path`, made when missing; usable from any thread, by one at a time."""
    with explained("open the knowledge base", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with explained_database(path):
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: what an add has reported must survive a power cut as well as a kill.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        _create(connection)
    elif 0 < version < _VERSION:
        _migrate(connection)
    elif version != _VERSION:
        raise UsageError(
            f"The knowledge base at {path} is of version {version}, and this program reads {_VERSION}; "
            "update the program, or choose another folder."
        )


def _create(connection: sqlite3.Connection) -> None:
    schema = (Path(__file__).parent / "schema.sql").read_text()
    with transaction(connection):
        # Asked again under the lock: another process may have been first.
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in _statements(schema):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")


def _migrate(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        # Asked again under the lock, as above.
        for version in range(connection.execute("PRAGMA user_version").fetchone()[0], _VERSION):
            for statement in _MIGRATIONS[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")


def _statements(script: str) -> Iterator[str]:
    """One by one, since `executescript` would commit the transaction it is in."""
    held = ""
    for line in script.splitlines():
        held += line.split("--")[0] + "\n"
        if sqlite3.complete_statement(held):
            yield held
            held = ""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of the block's changes or none; waits for other writers. One inside another is part of it."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def explained_database(path: Path) -> Generator[None]:
    """Turn any `sqlite3.DatabaseError` of the block into the sentence of `explain`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise explain(error, path) from error


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether `error` says that the file itself is damaged."""
    # Extended codes keep the primary one in their low byte.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(error: sqlite3.DatabaseError, path: Path) -> KernelScientistError:
    """The sentence for what SQLite met at `path`."""
    # Extended codes keep the primary one in their low byte. Errors of Python's own binding have none.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return UnusableEnvironment(
            f"No space is left for the knowledge base at {path}; free some and try again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        kind = UnusableEnvironment if is_own(path) else UsageError
        return kind(
            f"The knowledge base at {path} cannot be written ({error}); change its permissions, or choose "
            "another folder with KERNEL_SCIENTIST_HOME."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UnusableEnvironment(
            f"Another process has kept the knowledge base at {path} busy for {_BUSY_S:g} s; "
            "wait for it, or stop it."
        )
    if is_damage(error):
        return DamagedError(
            f"The knowledge base at {path} is damaged ({error}); repair it with "
            "'kernel-scientist knowledge rebuild', which keeps the damaged file."
        )
    return UnusableEnvironment(
        f"The knowledge base at {path} failed ({error}); see that its disk works and has space left."
    )
