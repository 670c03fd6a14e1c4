"""What is wrong with a record before its run goes on, and setting aside what a kill or damage left in pieces.

Covered: a torn end, damaged lines anywhere, candidates without their line, a record that is gone, empty or
damaged from beginning to end. Nothing is deleted: what is cut off goes to ``cut/sitting-N`` in the run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import atomic_write, explained, open_regular

from .run import BASELINE_ID, Run

if TYPE_CHECKING:
    from .past import Past

__all__ = ["require_readable", "set_aside"]

_CHUNK = 1 << 20
_OPENING = b'{"seq":1,"time":"'
"""How the first line of a record begins."""


def require_readable(past: Past) -> None:
    """Raise `UsageError` where the record holds nothing to go on from, and yet the run had begun.

    A run that was killed before its first line was whole has not begun.
    """
    if past.seq:
        return
    file = past.run.path / "events.jsonl"
    made = [name for name in past.unannounced if name != BASELINE_ID]
    with explained("read the record", file):
        text = _beginning(file)
    if not made and (not text or _is_torn_opening(text)):
        return
    fault = (
        "is missing" if text is None else "is damaged, none of its lines can be read" if text else "is empty"
    )
    raise UsageError(
        f"{file}: {fault}, so there is nothing to go on from, and nothing was changed; put a copy of it "
        f"back, or start anew with 'kernel-scientist run {past.info.problem}' (the kernels stay in "
        f"{past.run.path / 'candidates'})."
    )


def _beginning(file: Path) -> bytes | None:
    """The first part of a file; ``None`` where there is none."""
    try:
        with os.fdopen(open_regular(file), "rb") as record:
            return record.read(_CHUNK)
    except FileNotFoundError:
        return None


def _is_torn_opening(text: bytes) -> bool:
    return b"\n" not in text and text[: len(_OPENING)] == _OPENING[: len(text)]


def set_aside(past: Past) -> tuple[str, ...]:
    """Cut off what is in pieces, keeping it in the run's folder; what was done, as sentences.

    Damaged lines before a whole one stay where they are and are passed over.
    """
    run = past.run
    notes: list[str] = []
    place = run.path / "cut" / f"sitting-{past.sittings + 1}"
    cut = _cut_torn_end(run, place)
    if cut:
        notes.append(
            f"{cut} bytes after the record's last whole line are kept in {place.relative_to(run.path)}"
        )
    damaged = Run(run.path).damaged_lines
    if damaged:
        lines = "1 damaged line" if damaged == 1 else f"{damaged} damaged lines"
        notes.append(f"{lines} of the record passed over")
    made = [name for name in past.unannounced if past.sittings]
    if made:
        _move_candidates(run, made, place)
        notes.append(
            f"candidates that the record does not name are kept in {place.relative_to(run.path)}: "
            f"{', '.join(made[:6])}{' and more' if len(made) > 6 else ''}"
        )
    return tuple(notes)


def _move_candidates(run: Run, names: list[str], place: Path) -> None:
    with explained("set candidates aside", place):
        (place / "candidates").mkdir(parents=True, exist_ok=True)
        for name in names:
            (run.path / "candidates" / name).rename(place / "candidates" / name)


def _cut_torn_end(run: Run, place: Path) -> int:
    """Cut off what follows the last whole line, having kept it; how many bytes that was."""
    file = run.path / "events.jsonl"
    if not file.exists():
        return 0
    with explained("mend the record", file):
        size = file.stat().st_size
        whole = _whole(file, size)
        if whole < size:
            place.mkdir(parents=True, exist_ok=True)
            with os.fdopen(open_regular(file), "rb") as record:
                record.seek(whole)
                atomic_write(place / "events.jsonl", record.read())
            os.truncate(file, whole)
    return size - whole


def _whole(file: Path, size: int) -> int:
    """Where the last whole line ends."""
    chunk = _CHUNK
    with os.fdopen(open_regular(file), "rb") as record:
        while True:
            start = max(0, size - chunk)
            record.seek(start)
            found = _last_line_end(record.read(size - start), at_start=start == 0)
            if found is not None:
                return start + found
            chunk *= 4


def _last_line_end(data: bytes, *, at_start: bool) -> int | None:
    """Where the last line of `data` that is JSON ends; ``None`` when more of the file must be read."""
    end = data.rfind(b"\n")
    while end >= 0:
        before = data.rfind(b"\n", 0, end)
        if before < 0 and not at_start:
            return None
        if _is_json(data[before + 1 : end]):
            return end + 1
        end = before
    return 0 if at_start else None


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
