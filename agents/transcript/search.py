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

from .. import events as ev
from .beneath import open_beneath
from .filters import EventFilter
from .record import Entry, Record
from .sources import source_text
from .summary import Summary
from .values import json_list

__all__ = ["Hit", "search_record", "split_words"]

_AROUND = 90
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
    verdicts = summary.verdicts if chosen.verdict is not None else {}
    # Only what JSON does not write otherwise can be ruled out in the bytes of the line.
    plain = [word.encode() for word in words if re.fullmatch(r"[ !#-\[\]-~]+", word)]
    try:
        handle = open_beneath(record.run.path, "events.jsonl")
    except FileNotFoundError:
        return
    with explained("read the record", record.path), os.fdopen(handle, "rb") as file:
        for entry in record.entries:
            if not chosen.wants(entry, verdicts):
                continue
            file.seek(entry.offset)
            line = file.read(entry.length)
            hit = None
            lowered = line.lower()
            if all(word in lowered for word in plain):
                hit = _hit(entry, _texts(json.loads(line)), words)
            if hit is None and entry.kind == "candidate_created":
                hit = _in_source(record, entry, words)
            if hit is not None:
                yield hit


def _in_source(record: Record, entry: Entry, words: tuple[str, ...]) -> Hit | None:
    event = record.event(entry.seq)
    if not isinstance(event, ev.CandidateCreated):
        return None
    source = source_text(record.run, event.path).text
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
