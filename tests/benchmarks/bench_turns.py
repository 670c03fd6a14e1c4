"""The overhead of an agent's turn: its wall time less what models, tools and look-ups took."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from kernel_scientist.agents import Config, Event, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.knowledge.records import Passage
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

GENERATIONS = 30


class NoLiterature:
    """A library without a passage: looking things up is measured elsewhere."""

    def search(self, query: str, *, limit: int = 8) -> list[Passage]:
        del query, limit
        return []


def times(constants: Mapping[str, object]) -> FakeAnswer:
    """A time that depends on every constant, so that the search has something to learn."""
    work = sum(value for value in constants.values() if isinstance(value, int))
    return FakeAnswer(time_us=1000.0 + 7.0 * (work % 97))


def overheads(events: list[Event]) -> dict[str, list[float]]:
    """Milliseconds of overhead for each turn, by agent, in order."""
    by_agent: dict[str, list[float]] = defaultdict(list)
    began: datetime | None = None
    spent_s = 0.0
    for event in events:
        match event:
            case ev.SpeakerSelected():
                began, spent_s = event.time, 0.0
            case ev.ModelCall() | ev.EvaluationFinished():
                spent_s += event.seconds
            case ev.MessageSent() if began is not None:
                wall_s = (event.time - began).total_seconds()
                by_agent[event.agent].append(1e3 * (wall_s - spent_s))
                began = None
            case _:
                pass
    return by_agent


def main() -> None:
    """Run a session with scripted times and no literature, and print the overhead of its turns."""
    events: list[Event] = []
    with tempfile.TemporaryDirectory() as folder:
        Session(
            "matmul",
            target=FakeTarget(times),
            knowledge=NoLiterature(),
            runs_dir=Path(folder),
            generations=GENERATIONS,
            observer=events.append,
            config=Config(),
        ).run()
    print(f"milliseconds a turn, model offline, {GENERATIONS} generations, scripted times:")
    for agent, values in overheads(events).items():
        deciles = statistics.quantiles(values, n=10)
        third = max(1, len(values) // 3)
        first, last = statistics.median(values[:third]), statistics.median(values[-third:])
        print(
            f"  {agent:<12} median {statistics.median(values):7.2f}"
            f"   10-90 % {deciles[0]:7.2f} to {deciles[-1]:7.2f}"
            f"   first third {first:7.2f}, last third {last:7.2f}   ({len(values)} turns)"
        )


if __name__ == "__main__":
    main()
