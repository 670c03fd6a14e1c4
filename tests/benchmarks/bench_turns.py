"""What a session takes beyond its models and its device: by turn, by candidate, and as a run grows long."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from good_model import NoLiterature, reply

from kernel_scientist.agents import Config, Event, Session
from kernel_scientist.agents import events as ev
from kernel_scientist.agents.models.scripted import ScriptedModel
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

OFFLINE_GENERATIONS = 30
GENERATIONS = 200
FLAT = 1.5
"""A session is flat when its last quarter takes at most so many times what its first takes."""


@dataclass
class Watch:
    """The events of a session, and the processor time used when each generation began."""

    events: list[Event] = field(default_factory=list[Event])
    marks: list[float] = field(default_factory=list[float])

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, (ev.GenerationStarted, ev.RunFinished)):
            self.marks.append(time.process_time())


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


def watched(generations: int, **options: Any) -> Watch:
    """A session with scripted times and no literature."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        Session(
            "matmul",
            target=FakeTarget(times),
            knowledge=NoLiterature(),
            runs_dir=Path(folder),
            generations=generations,
            observer=watch,
            config=Config(),
            **options,
        ).run()
    return watch


def print_turns(watch: Watch) -> None:
    """Overhead by turn, and by candidate with all its turns' share."""
    by_agent = overheads(watch.events)
    for agent, values in by_agent.items():
        deciles = statistics.quantiles(values, n=10)
        third = max(1, len(values) // 3)
        first, last = statistics.median(values[:third]), statistics.median(values[-third:])
        print(
            f"  {agent:<12} median {statistics.median(values):7.2f}"
            f"   10-90 % {deciles[0]:7.2f} to {deciles[-1]:7.2f}"
            f"   first third {first:7.2f}, last third {last:7.2f}   ({len(values)} turns)"
        )
    candidates = sum(isinstance(one, ev.CandidateCreated) and bool(one.generation) for one in watch.events)
    total = sum(sum(values) for values in by_agent.values())
    print(f"  a candidate  mean   {total / max(1, candidates):7.2f}   ({candidates} candidates)")


def print_growth(watch: Watch) -> None:
    """Processor time a generation and tokens a prompt, by quarters of the run; fails where they grow."""
    spent = [1e3 * (after - before) for before, after in zip(watch.marks, watch.marks[1:], strict=False)]
    growth = _print_quarters("milliseconds of processor time a generation", spent)
    prompts: dict[str, list[float]] = defaultdict(list)
    for event in watch.events:
        if isinstance(event, ev.ModelCall):
            prompts[event.agent].append(event.usage.prompt_tokens)
    grown = {agent: _print_quarters(f"tokens a prompt, {agent}", one) for agent, one in prompts.items()}
    if growth > FLAT:
        raise AssertionError(f"a generation at the end takes {growth:.2f} times one at the beginning")
    agent = max(grown, key=lambda one: grown[one])
    if grown[agent] > FLAT:
        raise AssertionError(f"a prompt of the {agent} grows {grown[agent]:.2f} times")


def _print_quarters(what: str, values: list[float]) -> float:
    """Print the median of each quarter and the last over the first with its spread; returns that ratio.

    The first tenth is left out: a young run has less to show than a prompt has room for.
    """
    grown = values[len(values) // 10 :]
    size = len(grown) // 4
    quarters = [grown[part * size : (part + 1) * size] for part in range(4)]
    middles = [statistics.median(one) for one in quarters]
    ratio = middles[-1] / middles[0]
    chance = random.Random(1)
    drawn = sorted(
        statistics.median(chance.choices(quarters[-1], k=size))
        / statistics.median(chance.choices(quarters[0], k=size))
        for _ in range(500)
    )
    medians = ", ".join(f"{one:.0f}" for one in middles)
    spread = f"90 % of redrawn ones {drawn[25]:.2f} to {drawn[474]:.2f}"
    print(f"{what}, median of each quarter after a tenth: {medians}; last to first {ratio:.2f} ({spread})")
    return ratio


def main() -> None:
    """Print the overhead of turns with two models, and how a long session grows."""
    print(f"milliseconds a turn, model offline, {OFFLINE_GENERATIONS} generations, scripted times:")
    print_turns(watched(OFFLINE_GENERATIONS))
    print(f"milliseconds a turn, a scripted model, {GENERATIONS} generations, scripted times:")
    watch = watched(GENERATIONS, model=ScriptedModel(reply))
    print_turns(watch)
    print_growth(watch)


if __name__ == "__main__":
    main()
