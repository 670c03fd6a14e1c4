"""How much of a model's latency lanes hide: the wall time of 24 candidates in 1 and in 3 lanes.

Latency and evaluation are scripted: 5 s a model call and 0.2 s an evaluation, here ten times shorter.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from good_model import NoLiterature, reply

from kernel_scientist.agents import Config, Session
from kernel_scientist.agents.models.scripted import ScriptedModel
from kernel_scientist.tools.targets.fake import FakeAnswer, FakeTarget

SCALE = 0.1
LATENCY_S, EVALUATION_S = 5.0 * SCALE, 0.2 * SCALE
CANDIDATES, LANES, REPEATS = 24, 3, 3
GOAL = 0.4


def judged(constants: object) -> FakeAnswer:
    """A scripted evaluation that takes its time."""
    del constants
    time.sleep(EVALUATION_S)
    return FakeAnswer()


def seconds(lanes: int, experiments: int, candidates: int = CANDIDATES) -> float:
    """The wall time of a session of so many candidates."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        result = Session(
            "matmul",
            target=FakeTarget(judged),
            model=ScriptedModel(reply, latency_s=LATENCY_S),
            knowledge=NoLiterature(),
            runs_dir=Path(folder),
            generations=candidates // experiments,
            experiments=experiments,
            lanes=lanes,
            config=Config(),
        ).run()
        took = time.perf_counter() - began
        evaluations = result.run.info.totals.evaluations
    if evaluations != candidates:
        raise AssertionError(f"{evaluations} evaluations, not {candidates}: {result.stop_reason}")
    return took


def main() -> None:
    """Print wall times and their ratio; fails where three lanes take more than the goal."""
    seconds(1, 1, 1)  # imports and first compiles are in neither
    print(f"{CANDIDATES} candidates, {LATENCY_S:g} s a model call, {EVALUATION_S:g} s an evaluation:")
    worst = 0.0
    for experiments in (2, 3):
        pairs = [(seconds(1, experiments), seconds(LANES, experiments)) for _ in range(REPEATS)]
        ratios = sorted(many / one for one, many in pairs)
        middle = statistics.median(ratios)
        generations = CANDIDATES // experiments
        least = -(-generations // LANES) / generations
        if generations % LANES == 0:
            # Otherwise a lane has one more to do than another, and the goal is next to the least possible.
            worst = max(worst, middle)
        one, many = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"  {generations:2d} generations of {experiments}   1 lane {one:6.2f} s   "
            f"{LANES} lanes {many:6.2f} s   ratio {middle:.3f} "
            f"({ratios[0]:.3f} to {ratios[-1]:.3f} in {REPEATS} pairs; at least {least:.3f})"
        )
    if worst > GOAL:
        raise AssertionError(f"{LANES} lanes take {worst:.3f} of the time of one, more than {GOAL}")


if __name__ == "__main__":
    main()
