"""Full text search over records: every word must stand somewhere in one event, or in one candidate's source.

Case does not matter; words in double quotes are looked for as one phrase.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained

from .beneath import open_beneath
from .filters import EventFilter
from .record import Entry, Record
from .sources import source_text
from .summary import Summary
from .values import json_list

__all__ = ["Hit", "search_record", "split_words"]

_AROUND = 90
_WINDOW = 1 << 16
# Never spelt out: identifiers and figures in which nobody looks for a word.
_SKIPPED = frozenset({"time", "key", "kernel_key", "baseline_key", "path", "kind", "type"})


@dataclass(frozen=True, slots=True)
class Hit:
    """An event that holds the words; `field` names the part that `excerpt` is from."""

    seq: int
    kind: str
    agent: str
    generation: int
    candidates: tuple[str, ...]
    field: str
    excerpt: str


def split_words(query: str) -> tuple[str, ...]:
    """The words and phrases of a query in lower case. Raises `UsageError` where it has none."""
    try:
        parts = shlex.split(query) if '"' in query else query.split()
    except ValueError:
        parts = query.replace('"', " ").split()
    words = tuple(dict.fromkeys(part.lower() for part in parts if part.strip()))
    if not words:
        raise UsageError("There is nothing to look for; give at least one word.")
    return words


def search_record(
    record: Record, summary: Summary, words: tuple[str, ...], wanted: EventFilter | None = None
) -> Iterator[Hit]:
    """The events of `record` that hold all of `words`, in their order.

    A candidate's source counts as part of the event that made it.
    """
    chosen = wanted or EventFilter()
    entries = record.entries
    if chosen.is_set:
        entries = chosen.select(entries, summary.verdicts if chosen.verdict is not None else {})
    # Only what JSON does not write otherwise can be ruled out in the bytes of the line.
    plain = [word.encode() for word in words if re.fullmatch(r"[ !#-\[\]-~]+", word)]
    for entry, line in _candidate_lines(record, entries, plain):
        hit = _hit(entry, _texts_of(line), words) if line else None
        if hit is None and entry.kind == "candidate_created":
            row = summary.candidates.get(entry.candidates[0])
            hit = None if row is None else _in_source(record, entry, row.path, words)
        if hit is not None:
            yield hit


def _candidate_lines(
    record: Record, entries: list[Entry], plain: list[bytes]
) -> Iterator[tuple[Entry, bytes]]:
    """The entries whose lines hold all of `plain`, with the line; also those that made a candidate, then
    with an empty line where it does not hold them."""
    if not entries:
        return
    with explained("read the record", record.path):
        handle = open_beneath(record.run.path, "events.jsonl")
    with os.fdopen(handle, "rb") as file:
        for window in _windows(entries):
            start = window[0].offset
            file.seek(start)
            block = file.read(window[-1].offset + window[-1].length - start)
            lowered = block.lower()
            worth = all(word in lowered for word in plain)
            for entry in window:
                first, last = entry.offset - start, entry.offset - start + entry.length
                if worth and all(lowered.find(word, first, last) >= 0 for word in plain):
                    yield entry, block[first:last]
                elif entry.kind == "candidate_created":
                    yield entry, b""


def _windows(entries: list[Entry]) -> Iterator[list[Entry]]:
    """The entries in groups that lie near each other, to be read and looked through at once."""
    window: list[Entry] = []
    for entry in entries:
        if window and entry.offset + entry.length - window[0].offset > _WINDOW:
            yield window
            window = []
        window.append(entry)
    yield window


def _in_source(record: Record, entry: Entry, path: str, words: tuple[str, ...]) -> Hit | None:
    source = source_text(record.run, path).text
    return _hit(entry, [("source", source)], words) if source else None


def _hit(entry: Entry, texts: list[tuple[str, str]], words: tuple[str, ...]) -> Hit | None:
    found: dict[str, tuple[str, str]] = {}
    for field, text in texts:
        lowered = text.lower()
        for word in words:
            if word not in found and word in lowered:
                found[word] = (field, text)
    if len(found) < len(words):
        return None
    field, text = found[words[0]]
    return Hit(
        entry.seq, entry.kind, entry.agent, entry.generation, entry.candidates, field,
        _excerpt(text, words[0]),
    )  # fmt: skip


def _texts_of(line: bytes) -> list[tuple[str, str]]:
    try:
        return _texts(json.loads(line))
    except ValueError:
        # It was an event when it was indexed; whoever has changed it since will find it told as damaged.
        return []


def _texts(value: Any, field: str = "") -> list[tuple[str, str]]:
    """Every string in a JSON value with the name of the field it stands in."""
    if isinstance(value, str):
        return [(field, value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return [pair for name, inner in fields if name not in _SKIPPED for pair in _texts(inner, name)]
    return [pair for inner in json_list(value) for pair in _texts(inner, field)]


def _excerpt(text: str, word: str) -> str:
    """The words around the first place of `word`, on one line."""
    place = text.lower().find(word)
    first, last = max(0, place - _AROUND), place + len(word) + _AROUND
    before, after = "…" if first else "", "…" if last < len(text) else ""
    return before + " ".join(text[first:last].split()) + after
