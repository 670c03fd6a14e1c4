"""How near to the optimum a search comes: median fraction of it at 25, 50, 100 and 200 evaluations.

On spaces that are recorded here on the CPU device (once, into ``.bench/``; a recording that was cut short
goes on the next time), on made-up ones, and on the cache files in BENCH_FILES (separated by colons). Kernel
Tuner's strategies run in an environment of their own there, in its simulation mode; where that cannot
be installed it is said. BENCH_RUNS runs of each (20), BENCH_RECORD_S seconds for recording (1800).
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from kernel_scientist.agents.models.search import Point, SearchSpace, SurrogateSearch
from kernel_scientist.tools.recording import load_recording

HERE = Path(__file__).parent
DATA = HERE.parent.parent / ".bench"
LEVELS = (25, 50, 100, 200)
RUNS = int(os.environ.get("BENCH_RUNS", "20"))
TUNER = "kernel-tuner==1.5.0"
STRATEGIES = (
    "basinhopping", "bayes_opt", "diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm",
    "greedy_ils", "greedy_mls", "minimize", "mls", "ordered_greedy_mls", "pso", "simulated_annealing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Space:
    """A space by places in its lists; `file` is its cache file, where it has one."""

    name: str
    search: SearchSpace
    times: Mapping[Point, float | None]
    file: Path | None = None

    @property
    def optimum(self) -> float:
        return min(time for time in self.times.values() if time is not None)

    def curve(self, order: Iterator[Point]) -> list[float]:
        """The fraction of the optimum after each level's evaluations; failures cost one each."""
        best, reached = math.inf, dict.fromkeys(LEVELS, 0.0)
        for done, point in enumerate(order, start=1):
            taken = self.times[point]
            best = best if taken is None else min(best, taken)
            for level in LEVELS:
                if done <= level:
                    reached[level] = self.optimum / best
            if done == min(LEVELS[-1], len(self.times)):
                break
        return [reached[level] for level in LEVELS]


def main() -> None:
    strategies = {"offline": _offline, "random": _random, "greedy": _greedy}
    python = _kernel_tuner()
    for space in _spaces():
        failed = sum(time is None for time in space.times.values())
        print(f"\n{space.name}: {len(space.times)} configurations, {failed} failed; {RUNS} runs each")
        print(f"  {'evaluations':24}" + "".join(f"{level:>24}" for level in LEVELS))
        for name, order in strategies.items():
            began = time.perf_counter()
            curves = [space.curve(order(space, seed)) for seed in range(RUNS)]
            _show(name, curves, f"{(time.perf_counter() - began) / RUNS:.2f} s a run")
        if python is not None and space.file is not None:
            for name in STRATEGIES:
                _show_simulated(python, space, name)


def _show(name: str, curves: list[list[float]], remark: str = "") -> None:
    low, middle, high = np.quantile(np.array(curves), [0.25, 0.5, 0.75], axis=0)
    cells = "".join(
        f"{f'{m:.3f} ({a:.3f} to {b:.3f})':>24}" for a, m, b in zip(low, middle, high, strict=True)
    )
    print(f"  {name:24}{cells}  {remark}", flush=True)


def _offline(space: Space, seed: int) -> Iterator[Point]:
    search, tried = SurrogateSearch(space.search, seed=seed), dict[Point, float | None]()
    while (point := search.propose(tried)) is not None:
        yield point
        taken = space.times[point]
        tried[point] = None if taken is None else -math.log(taken)


def _random(space: Space, seed: int) -> Iterator[Point]:
    yield from random.Random(seed).sample(list(space.times), len(space.times))


def _greedy(space: Space, seed: int) -> Iterator[Point]:
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


def _spaces() -> Iterator[Space]:
    recorder = _sibling("record_spaces")
    left = float(os.environ.get("BENCH_RECORD_S", "1800"))
    for one in recorder.SPACES:
        began = time.perf_counter()
        file, done, count = recorder.record(one, DATA / "spaces", budget_s=left)
        left = max(0.0, left - (time.perf_counter() - began))
        if done < count:
            print(f"\n{one.name}: {done} of {count} configurations recorded so far; run again to go on")
        else:
            yield _recorded(file, f"{one.name} (recorded here)")
    for name, make in _sibling("synthetic_spaces").SYNTHETIC.items():
        lists, times = make()
        yield _placed(f"{name} (made up, nothing measured)", lists, times)
    for name in filter(None, os.environ.get("BENCH_FILES", "").split(":")):
        yield _recorded(Path(name), f"{name}")


def _recorded(file: Path, name: str) -> Space:
    recording = load_recording(file)
    times = {values: row.time_ms if row.times_ms else None for values, row in recording.rows.items()}
    return _placed(f"{name}, {recording.device}", recording.values, times, file)


def _placed(
    name: str,
    lists: Mapping[str, tuple[int | float | str, ...]],
    times: Mapping[tuple[int | float | str, ...], float | None],
    file: Path | None = None,
) -> Space:
    places = [{value: place for place, value in enumerate(values)} for values in lists.values()]
    rows = {
        tuple(known[value] for known, value in zip(places, values, strict=True)): taken
        for values, taken in times.items()
    }
    ordered = tuple(not any(isinstance(one, str) for one in values) for values in lists.values())
    search = SearchSpace(tuple(map(len, lists.values())), ordered, rows.__contains__, list(rows))
    return Space(name, search, rows, file)


def _kernel_tuner() -> Path | None:
    """The interpreter of an environment that has Kernel Tuner, made when there is none."""
    folder = DATA / "kernel-tuner"
    python = folder / "bin/python"
    if not ((folder / "ready").exists() and python.exists()):
        try:
            venv.create(folder, with_pip=True, clear=True)
            command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", TUNER]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            print(f"Kernel Tuner's strategies are not compared: it cannot be installed ({said[-1:]})")
            return None
        (folder / "ready").touch()
    return python


def _show_simulated(python: Path, space: Space, strategy: str) -> None:
    """A strategy of Kernel Tuner's; it needs a cache file that is closed, in one piece and unpacked."""
    assert space.file is not None
    closed = DATA / "closed" / f"{space.file.stem}.json"
    document = _document(space.file)
    if document is None:
        print(f"  {strategy:24} not run: {space.file.name} is not a cache file")
        return
    closed.parent.mkdir(parents=True, exist_ok=True)
    closed.write_text(json.dumps(document), encoding="utf-8")
    job = {"cache": str(closed), "strategy": strategy, "evaluations": LEVELS[-1], "runs": RUNS}
    began = time.perf_counter()
    done = subprocess.run(
        [python, HERE / "tune_simulated.py"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    if done.returncode:
        print(f"  {strategy:24} failed: {done.stderr.strip().splitlines()[-1:]}")
        return
    curves = [_at_levels(one, space.optimum) for one in json.loads(done.stdout) if one]
    _show(f"KT {strategy}", curves, f"{(time.perf_counter() - began) / RUNS:.2f} s a run")


def _at_levels(curve: list[float | None], optimum: float) -> list[float]:
    """A run that ended early keeps what it had."""
    reached = [curve[min(level, len(curve)) - 1] for level in LEVELS]
    return [0.0 if best is None else optimum / best for best in reached]


def _document(file: Path) -> dict[str, object] | None:
    if file.suffix == ".gz":
        return None
    text = file.read_text(encoding="utf-8").rstrip()
    for whole in (text, text.rstrip(",") + "}}"):
        try:
            document: dict[str, object] = json.loads(whole)
        except ValueError:
            continue
        return document if "cache" in document else None
    return None


def _sibling(name: str) -> ModuleType:
    """A module beside this one, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
