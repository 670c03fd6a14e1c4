"""The index of a long record kept in the cache folder, so that opening the run again does not read it all.

Covered: a record that has grown since (only the rest is read), one that was replaced, shortened or edited
(the index is not used), a cache that cannot be read or written (the record is read instead). It is known by
the file's identity, size and time; after growth by the bytes at both ends of what was indexed. Not covered: a
record edited in its middle and appended to afterwards: the recorder never does the first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, cast

from kernel_scientist.sandbox.errors import KernelScientistError
from kernel_scientist.sandbox.files import atomic_write, cache_home
from kernel_scientist.tools.evaluation import Interval

from .. import events as ev
from ..messages import Experiment, Hypotheses
from .beneath import open_beneath
from .record import Entry, Record
from .summary import CallUse, CandidateRow, Lead, Summary

__all__ = ["load_index", "save_index"]

_FORMAT = 1
_END = 4096
_WORTH = 2_000
"""A record of fewer events is read faster than its index."""


def load_index(record: Record, summary: Summary) -> bool:
    """Fill the fresh `record` and `summary` from the cache; whether there was an index that holds."""
    try:
        data = _msgpack().unpackb(_file(record).read_bytes(), strict_map_key=False, use_list=False)
        known = cast("dict[str, Any]", data)
        if known["version"] != _version() or not _holds(record, known):
            return False
        _fill_record(record, known)
        _fill_summary(record, summary, known)
    except (OSError, KernelScientistError, ValueError, TypeError, KeyError, IndexError, AssertionError):
        # Whatever is wrong with a cache, the record itself is there to be read.
        record.reset()
        summary.reset()
        return False
    return True


def save_index(record: Record, summary: Summary) -> None:
    """Keep the index where that is worth it; a cache that cannot be written is none."""
    grown = len(record.entries) - record.saved
    if grown < max(_WORTH, record.saved // 4):
        return
    values = {"version": _version(), **_record_values(record), **_summary_values(summary)}
    with contextlib.suppress(OSError, KernelScientistError):
        file = _file(record)
        values |= _identity(record, record.size)
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(file, cast("bytes", _msgpack().packb(values)))
        record.saved = len(record.entries)


def _msgpack() -> Any:
    # It has no type information; imported by name it is Any.
    return import_module("msgpack")


def _version() -> str:
    try:
        return f"{_FORMAT} {metadata.version('kernel-scientist')}"
    except metadata.PackageNotFoundError:
        return str(_FORMAT)


def _file(record: Record) -> Path:
    name = hashlib.sha256(os.fsencode(record.path.absolute())).hexdigest()[:32]
    return cache_home() / "transcripts" / f"{name}.idx"


def _identity(record: Record, indexed: int) -> dict[str, Any]:
    """What tells whether the first `indexed` bytes of the record are those that were indexed."""
    with os.fdopen(open_beneath(record.run.path, "events.jsonl"), "rb") as file:
        stat = os.fstat(file.fileno())
        ends = file.read(min(_END, indexed))
        file.seek(max(0, indexed - _END))
        ends += file.read(min(_END, indexed))
    return {
        "indexed": indexed,
        "file": (stat.st_dev, stat.st_ino),
        "state": (stat.st_size, stat.st_mtime_ns),
        "ends": hashlib.sha256(ends).digest(),
    }


def _holds(record: Record, known: dict[str, Any]) -> bool:
    now = _identity(record, known["indexed"])
    if now["file"] != known["file"] or now["ends"] != known["ends"]:
        return False
    return bool(now["state"] == known["state"] or now["state"][0] > known["state"][0])


def _record_values(record: Record) -> dict[str, Any]:
    turns, subjects, slots = record.followed
    return {
        "entries": [
            (e.seq, e.offset, e.length, e.kind, e.generation, e.lane, e.agent, e.candidates)
            for e in record.entries
        ],
        "damaged": record.damaged,
        "turns": {lane: [entry.seq for entry in turn] for lane, turn in turns.items()},
        "subjects": subjects,
        "slots": [(*key, name) for key, name in slots.items()],
    }


def _fill_record(record: Record, known: dict[str, Any]) -> None:
    intern = sys.intern
    entries = [
        Entry(seq, offset, length, intern(kind), generation, lane, intern(agent), candidates)
        for seq, offset, length, kind, generation, lane, agent, candidates in known["entries"]
    ]
    record.restore(entries, size=known["indexed"], damaged=known["damaged"])
    turns, subjects, slots = record.followed
    for lane, numbers in known["turns"].items():
        turns[lane] = [entry for number in numbers if (entry := record.entry(number)) is not None]
    subjects.update(known["subjects"])
    slots.update({(lane, generation, slot): name for lane, generation, slot, name in known["slots"]})


_ROW = (
    "id", "parent_id", "reference_id", "generation", "slot", "attempt", "lane", "path", "created_seq",
    "created_s", "verdict", "tier", "time_us", "checks_passed", "checks", "judged_seq", "plan_seq",
    "criterion", "finding_seq", "measured_uplift", "calibration",
)  # fmt: skip


def _ends(interval: Interval | None) -> tuple[float, float, float, float] | None:
    # dataclasses.astuple copies each figure; over many thousands that takes seconds.
    return None if interval is None else (interval.value, interval.low, interval.high, interval.level)


def _summary_values(summary: Summary) -> dict[str, Any]:
    return {
        "rows": [
            (
                {name: getattr(row, name) for name in _ROW},
                _ends(row.speedup),
                None if row.experiment is None else row.experiment.model_dump(),
            )
            for row in summary.candidates.values()
        ],
        "leads": [
            (lead.seq, lead.at_s, lead.candidate_id, _ends(lead.speedup), lead.tier) for lead in summary.leads
        ],
        "calls": summary.calls,
        "comparisons": [(*pair, seq) for pair, seq in summary.comparisons.items()],
        "passages": summary.passages,
        "errors": summary.errors,
        "judging_s": summary.judging_s,
        "start": summary.start,
        "last_s": summary.last_s,
        "started": None if summary.started is None else summary.started.seq,
        "finished": None if summary.finished is None else summary.finished.seq,
        "plans": [seq for _, seq, _ in summary.plans.values()],
    }


def _fill_summary(record: Record, summary: Summary, known: dict[str, Any]) -> None:
    for values, speedup, experiment in known["rows"]:
        row = CandidateRow(**values)
        row.speedup = None if speedup is None else Interval(*speedup)
        row.experiment = None if experiment is None else Experiment.model_validate(experiment)
        summary.candidates[row.id] = row
    summary.leads = [
        Lead(seq, at, name, Interval(*speedup), tier) for seq, at, name, speedup, tier in known["leads"]
    ]
    summary.calls = [CallUse(*call) for call in known["calls"]]
    summary.comparisons = {(a, b): seq for a, b, seq in known["comparisons"]}
    summary.passages, summary.errors = known["passages"], list(known["errors"])
    summary.judging_s, summary.start, summary.last_s = known["judging_s"], known["start"], known["last_s"]
    started, finished = (_event(record, known[name]) for name in ("started", "finished"))
    summary.started = started if isinstance(started, ev.RunStarted) else None
    summary.finished = finished if isinstance(finished, ev.RunFinished) else None
    for seq in known["plans"]:
        match record.event(seq):
            case ev.MessageSent(content=Hypotheses() as plan) as event:
                entry = record.entry(seq)
                assert entry is not None
                summary.plans[entry.lane] = (event.generation, seq, plan)
            case _:
                raise ValueError("the record holds another event than was indexed")


def _event(record: Record, seq: int | None) -> ev.Event | None:
    return None if seq is None else record.event(seq)
