"""Versions of the vector index side by side on disk, and the pointer to the one that counts.

    <folder>/current.json       names the current version, and what it holds
    <folder>/<version>/         a Chroma store, never changed once it is pointed to
    <folder>/<version>.lease    locked, shared, by each process that reads the version

A writer fills a fresh folder and then replaces the pointer, so that a reader always finds a whole store,
whenever the writer is killed. A version is deleted when it is no longer current and nobody holds its lease.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import sys
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError
from kernel_scientist.sandbox.files import atomic_write
from kernel_scientist.sandbox.processes import Limits, run

__all__ = ["Generations", "Lease", "Pointer"]

_POINTER = "current.json"
_CHROMA_DATABASE = "chroma.sqlite3"
_CHECK_TIMEOUT_S = 30.0
_SPARE_BYTES = 4 << 20
# A damaged store has been seen to write terabytes of nothing.
_CHECK_FILE_BYTES = 8 << 30


@dataclass(frozen=True, slots=True)
class Pointer:
    """The current version: how many vectors it holds, their highest number, its files' size and time."""

    version: str
    count: int
    last: int
    files: dict[str, list[int]]


@final
class Lease:
    """Keeps a version from being deleted until `release`, or until this process ends."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def release(self) -> None:
        os.close(self._handle)


@final
class Generations:
    """The versions below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def current(self) -> Pointer | None:
        """The pointer, or ``None`` when there is none that can be read."""
        try:
            found = json.loads((self.folder / _POINTER).read_bytes())
            return Pointer(
                str(found["version"]), int(found["count"]), int(found["last"]), dict(found["files"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def path(self, version: str) -> Path:
        return self.folder / version

    def fresh(self) -> str:
        """The name of a version that does not exist."""
        return uuid.uuid4().hex[:12]

    def copy(self, version: str, to: str) -> None:
        """Copy a version's files to the new version `to`."""
        shutil.copytree(self.path(version), self.path(to))

    def is_full(self) -> bool:
        """Whether the disk has no space for another version like the current one."""
        current = self.current()
        wanted = sum(size for size, _ in current.files.values()) if current else 0
        return shutil.disk_usage(self.folder).free < wanted + _SPARE_BYTES

    def drop(self, version: str) -> None:
        """Delete a version that was never pointed to."""
        shutil.rmtree(self.path(version), ignore_errors=True)

    def lease(self, version: str) -> Lease | None:
        """Hold a version; ``None`` when it is gone."""
        try:
            lease = Lease(self._lease_path(version))
        except OSError:
            return None
        # Asked only now: whoever deletes a version has to get its lease first.
        if self.path(version).is_dir():
            return lease
        lease.release()
        return None

    def switch(self, version: str, count: int, last: int) -> None:
        """Make `version`, which is complete, the current one."""
        for file in self.path(version).rglob("*"):
            handle = os.open(file, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        pointer = Pointer(version, count, last, self._stamp(version))
        atomic_write(self.folder / _POINTER, json.dumps(asdict(pointer)))

    def discard_others(self) -> None:
        """Delete versions that are neither current nor leased. Only for who holds the writers' lock."""
        current = self.current()
        for path in self.folder.iterdir():
            if path.is_dir() and (current is None or path.name != current.version):
                self._discard(path.name)

    def is_whole(self, pointer: Pointer) -> bool:
        """Whether the version answers: believed of unchanged files, else tried in a child process."""
        folder = self.path(pointer.version)
        if not folder.is_dir() or not _is_sound_database(folder / _CHROMA_DATABASE):
            return False
        return self._stamp(pointer.version) == pointer.files or self.answers(pointer.version)

    def answers(self, version: str) -> bool:
        """Try the version in a child process, with a time limit."""
        script = Path(__file__).with_name("check_store.py")
        try:
            done = run(
                [sys.executable, "-P", str(script), str(self.path(version))],
                cwd=self.folder,
                timeout_s=_CHECK_TIMEOUT_S,
                limits=Limits(file_bytes=_CHECK_FILE_BYTES),
                env=dict(os.environ),
            )
        except KernelScientistError:
            return False
        return not done.timed_out and done.returncode == 0 and done.stdout.strip() == b"ok"

    def _stamp(self, version: str) -> dict[str, list[int]]:
        """Size and time of each file but the database, which Chroma touches on reading too."""
        folder = self.path(version)
        stats = {str(file.relative_to(folder)): file.stat() for file in folder.rglob("*") if file.is_file()}
        return {
            name: [stat.st_size, stat.st_mtime_ns]
            for name, stat in sorted(stats.items())
            if not name.startswith(_CHROMA_DATABASE)
        }

    def _lease_path(self, version: str) -> Path:
        return self.folder / f"{version}.lease"

    def _discard(self, version: str) -> None:
        lease = self._lease_path(version)
        try:
            handle = os.open(lease, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            # On a full disk no lease can be made, by readers neither: one that is not there is nobody's.
            if not lease.exists():
                shutil.rmtree(self.path(version), ignore_errors=True)
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        else:
            shutil.rmtree(self.path(version), ignore_errors=True)
            lease.unlink(missing_ok=True)
        finally:
            os.close(handle)


def _is_sound_database(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.DatabaseError:
        return False
