"""Which events are wanted: by agent, kind, generation, lane, candidate and verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .record import Entry

__all__ = ["EventFilter"]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """An event is wanted when it meets every condition that is set.

    `verdict` is that of a candidate the event is about, or ``not judged``.
    """

    agent: str | None = None
    kind: str | None = None
    generation: int | None = None
    lane: int | None = None
    candidate: str | None = None
    verdict: str | None = None

    @property
    def is_set(self) -> bool:
        return self != EventFilter()

    def wants(self, entry: Entry, verdicts: Mapping[str, str]) -> bool:
        """`verdicts` are those of the run's candidates by id."""
        if self.agent is not None and entry.agent != self.agent:
            return False
        if self.kind is not None and entry.kind != self.kind:
            return False
        if self.generation is not None and entry.generation != self.generation:
            return False
        if self.lane is not None and entry.lane != self.lane:
            return False
        if self.candidate is not None and self.candidate not in entry.candidates:
            return False
        if self.verdict is None:
            return True
        return any(verdicts.get(name, "not judged") == self.verdict for name in entry.candidates)

    def select(self, entries: Iterable[Entry], verdicts: Mapping[str, str]) -> list[Entry]:
        """The wanted ones of `entries`, in their order."""
        return [entry for entry in entries if self.wants(entry, verdicts)]
