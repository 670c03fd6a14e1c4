"""``events.jsonl`` by byte offsets: read once, followed as it grows, any event fetched again by its `seq`.

A damaged line is passed over and counted, also one that turns out to be damaged only when it is read whole;
what stands after the last newline is not read yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.files import explained

from .. import events as ev
from ..run import Run
from .beneath import open_beneath
from .subjects import agent_of, candidates_of, lane_of

__all__ = ["Entry", "Record"]

_BUFFER = 1 << 16


@dataclass(slots=True)
class Entry:
    """Where an event lies in the record, and what one may look for it by.

    `candidates` holds also the candidate that a turn of the Coder or the Benchmarker is about.
    """

    seq: int
    offset: int
    length: int
    kind: str
    generation: int
    lane: int
    agent: str
    candidates: tuple[str, ...]


@final
class Record:
    """The events of one run. `entries` holds them in order as far as `refresh` has read.

    Each of `listeners` is called with every event and its entry, once. `saved` is how many of the entries
    are in a saved index. Not thread-safe.
    """

    def __init__(self, run: Run, *listeners: Callable[[ev.Event, Entry], None]) -> None:
        self.run = run
        self.saved = 0
        self._listeners = listeners
        self.reset()

    def reset(self) -> None:
        """Forget what was read; the next `refresh` begins anew."""
        self.entries: list[Entry] = []
        self.damaged = 0
        self._unreadable: set[int] = set()
        self.unfinished = False
        self.size = 0
        self._places: dict[int, int] = {}
        self._turns: dict[int, list[Entry]] = {}
        self._subjects: dict[int, str] = {}
        self._slots: dict[tuple[int, int, int | None], str] = {}

    def restore(self, entries: list[Entry], *, size: int, damaged: int) -> None:
        """Take over what was found in the first `size` bytes; the listeners hear nothing of it."""
        self.entries, self.size, self.damaged = entries, size, damaged
        self.saved = len(entries)
        self._places = {entry.seq: place for place, entry in enumerate(entries)}

    @property
    def followed(
        self,
    ) -> tuple[dict[int, list[Entry]], dict[int, str], dict[tuple[int, int, int | None], str]]:
        """Of the turns that are going on: their entries, their candidate, and the candidates of the slots."""
        return self._turns, self._subjects, self._slots

    @property
    def path(self) -> Path:
        return self.run.path / "events.jsonl"

    @property
    def last_seq(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    def refresh(self) -> int:
        """Read what was appended since; how many events that were. An absent file holds none."""
        try:
            handle = open_beneath(self.run.path, "events.jsonl")
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be read ({error.strerror}).") from None
        before = len(self.entries)
        # A buffer that is small enough to be used again and again: fresh memory costs more than the reading.
        with explained("read the record", self.path), os.fdopen(handle, "rb", _BUFFER) as file:
            file.seek(self.size)
            self.unfinished = False
            for line in file:
                self.unfinished = not line.endswith(b"\n")
                if not self.unfinished:
                    self._take(line)
        return len(self.entries) - before

    def _take(self, line: bytes) -> None:
        offset, self.size = self.size, self.size + len(line)
        try:
            event = ev.parse_event(line)
        except ValueError:
            self.damaged += 1
            return
        entry = Entry(
            event.seq, offset, len(line) - 1, event.kind, event.generation,
            lane_of(event), agent_of(event), candidates_of(event),
        )  # fmt: skip
        self._places[event.seq] = len(self.entries)
        self.entries.append(entry)
        self._follow_turn(event, entry)
        for listener in self._listeners:
            listener(event, entry)

    def _follow_turn(self, event: ev.Event, entry: Entry) -> None:
        """A turn's calls do not name the candidate: the Coder's makes one, the Benchmarker's has one."""
        lane = entry.lane
        match event:
            # The most frequent kind first: to find that a value is of another class takes pydantic long.
            case ev.ModelCall() | ev.ToolCall() | ev.PassagesRetrieved():
                self._turns.setdefault(lane, []).append(entry)
            case ev.SpeakerSelected():
                self._turns[lane] = [entry]
                self._subjects.pop(lane, None)
                known = self._slots.get((lane, entry.generation, event.slot))
                if entry.agent == "benchmarker" and known is not None:
                    self._subjects[lane] = known
            case ev.CandidateCreated():
                self._slots[lane, entry.generation, event.slot] = event.candidate_id
                for earlier in self._turns.pop(lane, []):
                    earlier.candidates = earlier.candidates or (event.candidate_id,)
            case ev.MessageSent():
                self._turns.pop(lane, None)
            case _:
                return
        subject = self._subjects.get(lane)
        if subject is not None and not entry.candidates:
            entry.candidates = (subject,)

    def entry(self, seq: int) -> Entry | None:
        place = self._places.get(seq)
        return None if place is None else self.entries[place]

    def event(self, seq: int) -> ev.Event | None:
        """The event of that number, read again; ``None`` where there is none."""
        entry = self.entry(seq)
        return None if entry is None else next(self.events([entry]), None)

    def events(self, entries: Sequence[Entry]) -> Iterator[ev.Event]:
        """The events of these entries, read again."""
        return (event for _, event in self.pairs(entries))

    def pairs(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, ev.Event]]:
        """The entries with their events, read again."""
        for entry, line in self.lines(entries):
            try:
                event = ev.parse_event(line)
            except ValueError:
                self._unreadable.add(entry.seq)
                continue
            yield entry, event

    def lines(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """The entries with their lines as they stand in the record."""
        if not entries:
            return
        with explained("read the record", self.path):
            handle = open_beneath(self.run.path, "events.jsonl")
        with os.fdopen(handle, "rb") as file:
            for entry in entries:
                file.seek(entry.offset)
                yield entry, file.read(entry.length)

    def faults(self) -> list[str]:
        """What is wrong with the record, as sentences; normally nothing."""
        if not self.path.exists():
            return [f"The record {self.path} is missing; what the agents did cannot be shown."]
        if not self.entries and not self.damaged:
            return [f"The record {self.path} is empty; what the agents did cannot be shown."]
        # A line without its end is one that the writer was killed in.
        damaged = self.damaged + self.unfinished + len(self._unreadable)
        lines = "1 damaged line" if damaged == 1 else f"{damaged} damaged lines"
        return [f"{lines} of {self.path} passed over."] if damaged else []
