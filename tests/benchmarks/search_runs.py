"""Search strategies on a recorded space, run in a process of its own by the search benchmark.

Reads a job as JSON from standard input (cache file, strategy, first seed, runs, evaluations) and prints, for
each run, the best time after each evaluation (``null`` before anything passed) and the CPU seconds it took.
A configuration that fails costs an evaluation, as any other does.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_scientist.agents.models.search import Point, SearchSpace, SurrogateSearch
from kernel_scientist.tools.recording import load_recording

__all__ = ["STRATEGIES", "PlacedSpace", "load_space", "run"]


@dataclass(frozen=True, slots=True)
class PlacedSpace:
    """A space by places in its lists, and the time of each allowed point; ``None``: it fails."""

    search: SearchSpace
    times: Mapping[Point, float | None]


def load_space(file: Path) -> PlacedSpace:
    recording = load_recording(file)
    places = [{value: place for place, value in enumerate(values)} for values in recording.values.values()]
    times = {
        tuple(known[value] for known, value in zip(places, values, strict=True)): (
            row.time_ms if row.times_ms else None
        )
        for values, row in recording.rows.items()
    }
    lists = recording.values.values()
    ordered = tuple(not any(isinstance(one, str) for one in values) for values in lists)
    return PlacedSpace(SearchSpace(tuple(map(len, lists)), ordered, times.__contains__, list(times)), times)


def offline(space: PlacedSpace, seed: int) -> Iterator[Point]:
    """The search of the offline model by itself: each proposal is made from all that was tried before."""
    search, tried = SurrogateSearch(space.search, seed=seed), dict[Point, float | None]()
    while (point := search.propose(tried)) is not None:
        yield point
        taken = space.times[point]
        tried[point] = None if taken is None else -math.log(taken)


def at_random(space: PlacedSpace, seed: int) -> Iterator[Point]:
    """Every configuration once, in random order."""
    yield from random.Random(seed).sample(list(space.times), len(space.times))


def greedy(space: PlacedSpace, seed: int) -> Iterator[Point]:
    """Hill climbing that takes the first better neighbour in random order, with random restarts."""
    draw, known, points = random.Random(seed), dict[Point, float](), list(space.times)

    def visit(point: Point) -> Iterator[Point]:
        if point not in known:
            known[point] = space.times[point] or math.inf
            yield point

    while len(known) < len(points):
        here = draw.choice(points)
        yield from visit(here)
        climbing = True
        while climbing:
            climbing = False
            near = list(space.search.neighbours(here))
            for other in draw.sample(near, len(near)):
                yield from visit(other)
                if known[other] < known[here]:
                    here, climbing = other, True
                    break


Strategy = Callable[[PlacedSpace, int], Iterator[Point]]
STRATEGIES: Mapping[str, Strategy] = {"offline": offline, "random": at_random, "greedy": greedy}


def run(space: PlacedSpace, strategy: Strategy, seed: int, evaluations: int) -> list[float | None]:
    """The best time after each evaluation; shorter than `evaluations` where the space is."""
    best, curve = math.inf, list[float | None]()
    for point in strategy(space, seed):
        taken = space.times[point]
        best = best if taken is None else min(best, taken)
        curve.append(best if math.isfinite(best) else None)
        if len(curve) == min(evaluations, len(space.times)):
            break
    return curve


def main() -> None:
    job = json.load(sys.stdin)
    space = load_space(Path(job["cache"]))
    began = time.process_time()
    curves = [
        run(space, STRATEGIES[job["strategy"]], seed, job["evaluations"])
        for seed in range(job["seed"], job["seed"] + job["runs"])
    ]
    print(json.dumps({"curves": curves, "cpu_s": time.process_time() - began}))


if __name__ == "__main__":
    main()
