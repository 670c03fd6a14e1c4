"""A run opened for reading: its record, what it amounts to, and whether it still goes on."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError

from ..run import Run, RunInfo, list_runs
from .record import Record
from .saved_index import load_index, save_index
from .summary import Summary

__all__ = ["OpenedRun", "RunShelf", "keep_index"]

# In bytes; no Linux file system has longer names.
_LONGEST_NAME = 255
_LONG = 1 << 20
"""Records below so many bytes are read at once."""


@final
@dataclass(slots=True)
class OpenedRun:
    """`refresh` reads on; `lock` is for whoever shares it between threads."""

    run: Run
    record: Record
    summary: Summary
    lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def of(cls, run: Run) -> OpenedRun:
        """Open `run` and read its record as far as it goes."""
        summary = Summary()
        opened = cls(run, Record(run, summary.take), summary)
        load_index(opened.record, summary)
        opened.refresh()
        return opened

    def refresh(self) -> int:
        """Read what was appended since; how many events that were."""
        new = self.record.refresh()
        save_index(self.record, self.summary)
        return new

    @property
    def info(self) -> RunInfo | None:
        """``run.json`` as it is now; ``None`` where it is damaged."""
        try:
            return self.run.info
        except UsageError:
            return None

    @property
    def best_id(self) -> str | None:
        """The best candidate: as ``run.json`` says, and while the run goes on the one that leads."""
        info = self.info
        if info is not None and (info.best is not None or info.status != "running"):
            return info.best.candidate_id if info.best else None
        return self.summary.leads[-1].candidate_id if self.summary.leads else None

    def faults(self) -> list[str]:
        """What cannot be read of the run, as sentences; normally nothing."""
        info = self.info
        live = info is not None and info.status == "running"
        damage = self.run.damage
        told = self.record.faults()
        if live and not self.record.damaged:
            told = []
        return [damage, *told] if damage else told

    def missing_files(self) -> list[str]:
        """Which kernels that the record names are not in the run's folder, as a sentence; normally none."""
        return self.run.missing_files([row.path for row in self.summary.candidates.values()])


def keep_index(run: Run) -> None:
    """Keep the index of a long record, so that whoever opens the run next need not wait for it."""
    # The index only saves time, so what hinders it is no fault of whoever has just ended a run.
    with contextlib.suppress(OSError, KernelScientistError):
        if (run.path / "events.jsonl").stat().st_size > _LONG:
            OpenedRun.of(run)


@final
class RunShelf:
    """The runs of one folder by id. A run is a folder in it, never a link to somewhere else.

    Of the runs that were opened the latest are kept open, as many as have `most_events` together and at least
    one; a run that was let go is opened again when it is asked for.
    """

    def __init__(self, folder: Path, *, most_events: int = 250_000) -> None:
        self.folder = folder
        self._most_events = most_events
        self._opened: dict[str, OpenedRun] = {}
        self._lock = threading.Lock()

    def runs(self) -> list[Run]:
        """The runs of the folder, oldest first."""
        return [run for run in list_runs(self.folder) if self._is_inside(run)]

    def open(self, run_id: str) -> OpenedRun:
        """The run of exactly that id, read as far as it goes. Raises `UsageError`."""
        run = self.find(run_id)
        with self._lock:
            opened = self._opened.pop(run_id, None) or OpenedRun.of(run)
            # What was asked for last stands last.
            self._opened[run_id] = opened
        with opened.lock:
            opened.refresh()
        with self._lock:
            self._let_go()
        return opened

    def find(self, run_id: str) -> Run:
        """The run of exactly that id, not opened yet. Raises `UsageError`."""
        run = Run(self.folder / run_id)
        named = bool(run_id) and "/" not in run_id and not run_id.startswith(".") and "\0" not in run_id
        if not named or len(os.fsencode(run_id)) > _LONGEST_NAME or not self._is_folder(run):
            raise UsageError(f"There is no run '{run_id}' here.")
        return run

    def is_open(self, run_id: str) -> bool:
        """Whether the run's record has been read already."""
        return run_id in self._opened

    def _let_go(self) -> None:
        events = sum(len(opened.record.entries) for opened in self._opened.values())
        for name, opened in list(self._opened.items())[:-1]:
            if events <= self._most_events:
                return
            events -= len(opened.record.entries)
            del self._opened[name]

    def _is_folder(self, run: Run) -> bool:
        return run.path.is_dir() and self._is_inside(run)

    def _is_inside(self, run: Run) -> bool:
        files = (run.path, run.path / "run.json", run.path / "events.jsonl", run.path / "running.lock")
        return not any(path.is_symlink() for path in files)
