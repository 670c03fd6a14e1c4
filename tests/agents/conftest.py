"""A session on scripted times and a small library: everything real but the device and the literature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernel_scientist.agents import Config, Run, Session, SessionResult
from kernel_scientist.agents.events import Event
from kernel_scientist.knowledge.records import Citation, Passage
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget


class Shelf:
    """A library of two passages; it keeps the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def search(self, query: str, *, limit: int = 8) -> list[Passage]:
        self.queries.append(query)
        found = [
            passage("tiles#1", "Larger tiles mean more reuse: tiling lets a tile be read once from memory."),
            passage("banks#2", "LDS has 32 banks; padding a row moves it to other banks of the LDS."),
        ]
        return found[:limit]


def passage(name: str, text: str) -> Passage:
    citation = Citation("A guide", "Memory", 7, "https://example.org/guide", "2026-12-01")
    return Passage(name, name.partition("#")[0], text, citation, 0.5, "both", "literature")


def times(constants: Mapping[str, Any]) -> FakeAnswer:
    """Work per thread pays off up to 4 by 8; everything else is indifferent."""
    work = min(constants["THREAD_M"], 4) ** 0.5 * min(constants["THREAD_N"], 8) ** 0.5
    return FakeAnswer(time_us=1000.0 / work)


@dataclass
class Held:
    """A session that was run: its result, its events as the observer saw them, its library."""

    result: SessionResult
    events: list[Event]
    shelf: Shelf

    @property
    def run(self) -> Run:
        return self.result.run

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def contents(self, kind: type[Any]) -> list[Any]:
        return [e.content for e in self.events if e.kind == "message" and isinstance(e.content, kind)]


Hold = Callable[..., Held]


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """Run a session with a fake target; keywords go to `Session`."""

    def held(problem: Any = "matmul", script: Any = times, **arguments: Any) -> Held:
        events: list[Event] = []
        shelf = arguments.pop("knowledge", None) or Shelf()
        session = Session(
            problem,
            target=FakeTarget(script),
            knowledge=shelf,
            runs_dir=tmp_path / "runs",
            observer=arguments.pop("observer", events.append),
            **{"config": Config(), **arguments},
        )
        return Held(session.run(), events, shelf)

    return held
