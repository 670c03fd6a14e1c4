"""What the page asks for, by path. A server answers from it, and an exported page carries the answers.

runs                            the runs of the folder
runs/ID                         the first screen
runs/ID/brief                   what run.json alone says, at once; is the rest ready?
runs/ID/candidates              every candidate in a line
runs/ID/changed/SEQ             the candidates that changed after event SEQ, in a line each
runs/ID/candidates/CID          one candidate with its source and evidence
runs/ID/heads/N                 what to filter by, of the events after the N-th, as columns
runs/ID/items/N                 the N-th hundred events as the conversation shows them
runs/ID/events/SEQ              one event, whole
runs/ID/learnt                  what came of each strategy, which passage moved which experiment
runs/ID/cost                    tokens and cost per agent
runs/ID/state                   the number of the last event, and whether the run goes on
runs/ID/search?q=, search?q=    events that hold all words
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import final

from kernel_scientist.sandbox.errors import KernelScientistError, UsageError

from ..run import Run
from ..transcript.items import item_values
from ..transcript.learnt import learnt_values
from ..transcript.opened import OpenedRun, RunShelf
from ..transcript.runs import brief_values, candidate_values, cost_values, overview_values, run_row
from ..transcript.search import search_record, split_words
from ..transcript.story import row_values
from ..transcript.values import Json

__all__ = ["PAGE_SIZE", "Api", "NotThere", "RunApi"]

PAGE_SIZE = 100
_HITS = 200
_QUICK_BYTES = 8_000_000
"""A record up to this size is read before anybody would notice."""


class NotThere(UsageError):  # noqa: N818 - a state of what was asked for, named as one
    """Nothing is known by that path."""


@final
class Api:
    """Answers of JSON values. Every text in them is as it was recorded: the page shows it as text only."""

    def __init__(self, shelf: RunShelf) -> None:
        self._shelf = shelf

    def get(self, path: str, words: str = "") -> Json:
        """The answer to `path`; `words` is what is searched for. Raises `UsageError`."""
        match path.split("/"):
            case ["runs"]:
                return {"runs": [run_row(run) for run in reversed(self._shelf.runs())]}
            case ["search"]:
                return self._search_all(words)
            case ["runs", run_id, "brief"]:
                return self._brief(run_id)
            case ["runs", run_id, *rest]:
                try:
                    opened = self._shelf.open(run_id)
                except UsageError as error:
                    raise NotThere(str(error)) from None
                with opened.lock:
                    return RunApi(opened).get(rest, words)
            case _:
                raise NotThere(f"There is nothing at '{path}'.")

    def prepare(self, run_id: str) -> None:
        """Read a run that will be asked for; what is wrong with it is told to whoever asks."""
        with contextlib.suppress(KernelScientistError, OSError):
            self._shelf.open(run_id)

    def _brief(self, run_id: str) -> Json:
        """What can be said of a run before its record has been read, which takes long where that is long."""
        try:
            run = self._shelf.find(run_id)
        except UsageError as error:
            raise NotThere(str(error)) from None
        short = _record_bytes(run) <= _QUICK_BYTES
        return {"ready": short or self._shelf.is_open(run_id), "about": brief_values(run)}

    def _search_all(self, words: str) -> Json:
        parts = split_words(words)
        hits: list[Json] = []
        for run in reversed(self._shelf.runs()):
            opened = self._shelf.open(run.id)
            with opened.lock:
                hits += _hits(opened, parts, _HITS + 1 - len(hits))
            if len(hits) > _HITS:
                break
        return {"hits": hits[:_HITS], "more": len(hits) > _HITS}


@final
class RunApi:
    """The answers on one run."""

    def __init__(self, opened: OpenedRun) -> None:
        self._opened = opened

    def get(self, rest: list[str], words: str = "") -> Json:
        """The answer to the steps after the run's id. Raises `UsageError`."""
        opened = self._opened
        match rest:
            case []:
                return overview_values(opened)
            case ["candidates"]:
                rows = opened.summary.candidates.values()
                values = [row_values(row) for row in rows]
                return {"candidates": values, "best_id": opened.best_id, "last_seq": opened.record.last_seq}
            case ["changed", number] if number.isascii() and number.isdigit():
                return _changed(opened, int(number[:12]))
            case ["candidates", name]:
                row = opened.summary.candidates.get(name)
                if row is None:
                    raise NotThere(f"The run has no candidate '{name}'.")
                return candidate_values(opened, row)
            case ["learnt"]:
                return learnt_values(opened)
            case ["cost"]:
                return cost_values(opened)
            case ["state"]:
                info = opened.info
                live = info is not None and info.status == "running"
                return {"last_seq": opened.record.last_seq, "live": live}
            case ["search"]:
                hits = _hits(opened, split_words(words), _HITS + 1)
                return {"hits": hits[:_HITS], "more": len(hits) > _HITS}
            case ["heads" | "items" | "events" as what, number] if number.isascii() and number.isdigit():
                return _NUMBERED[what](opened, int(number[:12]))
            case _:
                raise NotThere("There is nothing at this path.")


def _record_bytes(run: Run) -> int:
    try:
        return (run.path / "events.jsonl").stat().st_size
    except OSError:
        return 0


def _changed(opened: OpenedRun, since: int) -> Json:
    rows = opened.summary.candidates.values()
    changed = [row_values(row) for row in rows if row.last_seq > since]
    return {"candidates": changed, "best_id": opened.best_id, "last_seq": opened.record.last_seq}


def _hits(opened: OpenedRun, words: tuple[str, ...], most: int) -> list[Json]:
    found = islice(search_record(opened.record, opened.summary, words), most)
    return [{"run": opened.run.id, **asdict(hit)} for hit in found]


def _heads(opened: OpenedRun, start: int) -> Json:
    """Of the events after the first `start`: what they can be filtered by, a column each."""
    entries = opened.record.entries[start:]
    return {
        "start": start,
        "seq": [entry.seq for entry in entries],
        "kind": [entry.kind for entry in entries],
        "agent": [entry.agent for entry in entries],
        "generation": [entry.generation for entry in entries],
        "lane": [entry.lane for entry in entries],
        "candidates": [" ".join(entry.candidates) for entry in entries],
    }


def _items(opened: OpenedRun, page: int) -> Json:
    entries = opened.record.entries[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
    pairs = opened.record.pairs(entries)
    return {"items": [item_values(opened.record, opened.summary, entry, event) for entry, event in pairs]}


def _event(opened: OpenedRun, seq: int) -> Json:
    event = opened.record.event(seq)
    if event is None:
        raise NotThere(f"The run has no event {seq}.")
    return {"event": event.model_dump(mode="json")}


_NUMBERED: dict[str, Callable[[OpenedRun, int], Json]] = {
    "heads": _heads,
    "items": _items,
    "events": _event,
}
