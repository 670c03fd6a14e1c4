"""Writing a run folder: every event a flushed line, every file before the line that announces it."""

from __future__ import annotations

import contextlib
import copy
import difflib
import json
import os
import secrets as random_secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import atomic_write, explain_os_error, explained
from kernel_scientist.sandbox.printable import escape_hidden
from kernel_scientist.tools.evaluation import Evaluation

from .events import ComparisonFinished, EvaluationFinished, Event, ModelCall, parse_event
from .models.registry import HIDDEN
from .run import RunInfo

__all__ = ["Recorder", "new_run_folder", "unified_diff"]

E = TypeVar("E", bound=Event)


def new_run_folder(runs_dir: Path, problem: str) -> Path:
    """Make a fresh run folder whose name sorts by time. Raises `UsageError` where that is impossible."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    word = "".join(c if c.isalnum() else "-" for c in problem)[:40].strip("-") or "problem"
    folder = runs_dir / f"{stamp}_{word}_{random_secrets.token_hex(3)}"
    try:
        (folder / "candidates").mkdir(parents=True)
    except OSError as error:
        raise explain_os_error(error, "make a run folder", folder) from error
    return folder


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """The change from `old` to `new` as a unified diff; empty when they are the same."""
    return "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"{old_name}/kernel.hip",
            f"{new_name}/kernel.hip",
        )
    )


@final
class _Journal:
    """``events.jsonl``, open for appending: whole lines only, each handed over before the next is begun."""

    def __init__(self, path: Path, seq: int) -> None:
        self.path = path
        self.seq = seq
        try:
            self._handle: int | None = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666
            )
            self._size = os.fstat(self._handle).st_size
        except OSError as error:
            raise explain_os_error(error, "write the run", path) from error

    def append(self, line: bytes, *, lasting: bool) -> None:
        """Add a line; a `lasting` one survives a loss of power too. What fits in part is taken back."""
        assert self._handle is not None, "the record is closed"
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._handle, left) :]
            if lasting:
                os.fdatasync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise explain_os_error(error, "write the run", self.path) from error
        self._size += len(line)

    def close(self) -> None:
        """Bring everything to the disk. A second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(handle)
            os.close(handle)


@final
class Recorder:
    """The one writer of a run folder. `lane` and `generation` are stamped on every event.

    `secrets` are blotted out of everything written, wherever they may turn up. `seq` is that of the last
    event already in the record, `info` what ``run.json`` says first.
    """

    def __init__(
        self,
        folder: Path,
        *,
        observer: Callable[[Event], None] | None = None,
        secrets: Iterable[str] = (),
        seq: int = 0,
        info: RunInfo | None = None,
    ) -> None:
        self.folder = folder
        self.lane = 0
        self.generation = 0
        self._observer = observer
        # Short ones are left: blotting out a placeholder such as "x" would spoil the record.
        self._secrets = [json.dumps(one)[1:-1] for one in secrets if len(one) >= 6]
        if info is not None:
            # Before there is a record: a folder with a record alone would be a damaged run.
            self.write_info(info)
        self._journal = _Journal(folder / "events.jsonl", seq)

    def at(self, *, lane: int, generation: int) -> Recorder:
        """The same record, stamping another lane and generation."""
        other = copy.copy(self)
        other.lane, other.generation = lane, generation
        return other

    def emit(self, kind: type[E], **fields: Any) -> E:
        """Write one event and show it to the observer."""
        fields.setdefault("lane", self.lane)
        fields.setdefault("generation", self.generation)
        event = kind(seq=self._journal.seq + 1, time=datetime.now(UTC), **fields)
        # Escaped, so that a look at the file itself shows what is there and cannot steer the terminal.
        text = event.model_dump_json()
        cleaned = self._clean(text)
        line = escape_hidden(cleaned)
        self._journal.append(line.encode("utf-8", "replace") + b"\n", lasting=_is_paid(event))
        self._journal.seq = event.seq
        if self._observer is not None:
            # What observers pass on to others must not hold the secrets either.
            self._observer(event if cleaned == text else parse_event(cleaned))
        return event

    def write_info(self, info: RunInfo) -> None:
        """Replace ``run.json``, whole or not at all."""
        self._write("run.json", escape_hidden(self._clean(info.model_dump_json(indent=2))) + "\n")

    def write_candidate(self, candidate_id: str, source: str, report: str) -> str:
        """Write a new candidate's files; returns the kernel's path relative to the run folder."""
        place = f"candidates/{candidate_id}"
        self._mkdir(place)
        self._write(f"{place}/kernel.hip", source)
        if report:
            self._write(f"{place}/report.md", report.rstrip() + "\n")
        return f"{place}/kernel.hip"

    def write_evaluation(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Write what the judge found beside the candidate."""
        place = f"candidates/{candidate_id}"
        if evaluation.compile_log:
            self._write(f"{place}/compile.log", evaluation.compile_log)
        self._write(f"{place}/evaluation.json", json.dumps(evaluation.to_dict(), indent=2) + "\n")

    def write_best(self, files: dict[str, str]) -> None:
        """Make ``best/`` hold these files and no others; without any there is none."""
        best = self.folder / "best"
        with explained("write the run", best):
            for old in best.iterdir() if best.is_dir() else ():
                if old.name not in files:
                    old.unlink()
            if not files and best.is_dir():
                best.rmdir()
        if files:
            self._mkdir("best")
        for name, text in files.items():
            self._write(f"best/{name}", text)

    def close(self) -> None:
        """Close the record for every lane. A second call does nothing."""
        self._journal.close()
        # What an interrupted write left behind; there is no other writer.
        for part in self.folder.glob("**/.*.part"):
            part.unlink(missing_ok=True)

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def _mkdir(self, place: str) -> None:
        try:
            (self.folder / place).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise explain_os_error(error, "write the run", self.folder / place) from error

    def _write(self, name: str, text: str) -> None:
        try:
            atomic_write(self.folder / name, self._clean(text))
        except OSError as error:
            raise explain_os_error(error, "write the run", self.folder / name) from error
        except UnicodeEncodeError:
            raise UsageError(f"{self.folder / name}: the text to write is not Unicode.") from None


def _is_paid(event: Event) -> bool:
    """Whether the event tells of something that costs money or device time to have again."""
    return isinstance(event, (EvaluationFinished, ComparisonFinished)) or (
        isinstance(event, ModelCall) and event.cost_usd != 0
    )
