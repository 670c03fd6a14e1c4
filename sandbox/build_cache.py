"""Finished builds on disk by the hash of everything that made them; safe between threads and processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from .files import FileLock, explained

__all__ = ["BuildCache", "Built", "digest"]

_RESULT = "build.json"
_LOCKS = "locks"
_KEEP_S = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Built:
    """A code object in the cache and the facts (JSON values) that its compiler stored with it."""

    path: Path
    facts: dict[str, Any]
    cached: bool


def digest(parts: Iterable[bytes | str]) -> str:
    """A name for a sequence of byte strings; where one ends matters."""
    sha = hashlib.sha256()
    for part in parts:
        raw = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        sha.update(len(raw).to_bytes(8, "little"))
        sha.update(raw)
    return sha.hexdigest()[:40]


@final
class BuildCache:
    """A folder of builds. An entry is a folder that appears whole, by a rename, and is never changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str, file: str) -> Built | None:
        """The build of that key, if there is a whole one."""
        entry = self.folder / key[:2] / key
        try:
            facts = json.loads((entry / _RESULT).read_text())
            if (entry / file).stat().st_size != facts["bytes"]:
                return None
            os.utime(entry)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Built(entry / file, facts, cached=True)

    def build(self, key: str, file: str, make: Callable[[Path], dict[str, Any]]) -> Built:
        """The build of that key; `make` leaves it as `file` in the folder it gets and returns its facts.

        When `make` raises, nothing is stored. One caller builds while others that want the same key wait.
        """
        if found := self.get(key, file):
            return found
        with explained("write the compile cache", self.folder):
            (self.folder / _LOCKS).mkdir(parents=True, exist_ok=True)
            # A few lock files for all keys: two different builds seldom wait for one another.
            with FileLock(self.folder / _LOCKS / key[:2], timeout_s=300.0, purpose="(compiling)"):
                return self.get(key, file) or self._make(key, file, make)

    def _make(self, key: str, file: str, make: Callable[[Path], dict[str, Any]]) -> Built:
        entry = self.folder / key[:2] / key
        entry.parent.mkdir(exist_ok=True)
        job = Path(tempfile.mkdtemp(prefix="job-", dir=self.folder))
        try:
            facts = make(job)
            kept = job / ".keep"
            kept.mkdir()
            facts = {**facts, "bytes": (job / file).stat().st_size}
            (job / file).replace(kept / file)
            (kept / _RESULT).write_text(json.dumps(facts))
            # What stands there is damaged, or `get` would have found it.
            shutil.rmtree(entry, ignore_errors=True)
            kept.replace(entry)
        finally:
            shutil.rmtree(job, ignore_errors=True)
        return Built(entry / file, facts, cached=False)

    def prune(self) -> int:
        """Remove builds that nobody asked for in 30 days and jobs that a killed process left; how many."""
        now, removed = time.time(), 0
        for entry in [*self.folder.glob("??/*"), *self.folder.glob("job-*")]:
            age = 86400.0 if entry.name.startswith("job-") else _KEEP_S
            with suppress(OSError):
                if entry.is_dir() and now - entry.stat().st_mtime > age:
                    shutil.rmtree(entry, ignore_errors=True)
                    removed += 1
        return removed
