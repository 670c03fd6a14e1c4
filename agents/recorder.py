"""Writing a run folder: every event a flushed line, every file before the line that announces it."""

from __future__ import annotations

import difflib
import json
import os
import secrets as random_secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import atomic_write, explain_os_error
from kernel_scientist.sandbox.printable import escape_hidden
from kernel_scientist.tools.evaluation import Evaluation

from .events import Event
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
class Recorder:
    """The one writer of a run folder. `generation` is stamped on every event.

    `secrets` are blotted out of everything written, wherever they may turn up.
    """

    def __init__(
        self, folder: Path, *, observer: Callable[[Event], None] | None = None, secrets: Iterable[str] = ()
    ) -> None:
        self.folder = folder
        self.generation = 0
        self._seq = 0
        self._observer = observer
        # Short ones are left: blotting out a placeholder such as "x" would spoil the record.
        self._secrets = [json.dumps(one)[1:-1] for one in secrets if len(one) >= 6]
        try:
            self._lines = (folder / "events.jsonl").open("ab")
        except OSError as error:
            raise explain_os_error(error, "write the run", folder) from error

    def emit(self, kind: type[E], **fields: Any) -> E:
        """Write one event and show it to the observer."""
        self._seq += 1
        fields.setdefault("generation", self.generation)
        event = kind(seq=self._seq, time=datetime.now(UTC), **fields)
        # Escaped, so that a look at the file itself shows what is there and cannot steer the terminal.
        line = escape_hidden(self._clean(event.model_dump_json()))
        try:
            self._lines.write(line.encode("utf-8", "replace") + b"\n")
            self._lines.flush()
        except OSError as error:
            raise explain_os_error(error, "write the run", self.folder) from error
        if self._observer is not None:
            self._observer(event)
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
        """Fill ``best/`` with these files."""
        self._mkdir("best")
        for name, text in files.items():
            self._write(f"best/{name}", text)

    def close(self) -> None:
        if not self._lines.closed:
            self._lines.flush()
            os.fsync(self._lines.fileno())
            self._lines.close()
            # What an interrupted write left behind; there is no other writer.
            for part in self.folder.glob(".*.part"):
                part.unlink(missing_ok=True)

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
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
