"""How near to the optimum a search comes: median fraction of it at 25, 50, 100 and 200 evaluations.

On spaces that are recorded here on the CPU device (once, into ``.bench/``; a recording that was cut short
goes on the next time), on made-up ones, and on the cache files in BENCH_FILES (separated by colons). Kernel
Tuner's strategies run in an environment of their own there, in its simulation mode, and their runs are kept;
where it cannot be installed it is said. BENCH_RUNS runs of each (20), BENCH_RECORD_S seconds for recording
(1800), BENCH_TUNER=all for all of its strategies on made-up spaces too, BENCH_ONLY=WORD for some spaces.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
DATA = HERE.parent.parent / ".bench"
LEVELS = (25, 50, 100, 200)
RUNS = int(os.environ.get("BENCH_RUNS", "20"))
ONLY = os.environ.get("BENCH_ONLY", "")
OURS = ("offline", "random", "greedy")
# On a made-up space: one each of its kinds (local search, population, annealing, model).
FEW = ("bayes_opt", "genetic_algorithm", "greedy_mls", "simulated_annealing")
SEED = 1

Fractions = NDArray[np.float64]


def _sibling(name: str) -> ModuleType:
    """A module beside this one, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


statistics, spaces, tuner = _sibling("search_statistics"), _sibling("search_spaces"), _sibling("search_tuner")


@dataclass(slots=True)
class Tally:
    """How often `offline` was ahead, level and behind, by what it was compared with."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, other: str, word: str) -> None:
        self.counts.setdefault(other, Counter())[word] += 1

    def show(self) -> None:
        print("\noffline over all spaces and budgets (95 % intervals of the ratio of mean fractions)")
        for other, words in self.counts.items():
            said = ", ".join(f"{word} {words[word]}" for word in ("ahead", "level", "behind"))
            print(f"  against {other:28} {said}")


def main() -> None:
    python = tuner.install_tuner(DATA / "kernel-tuner")
    if isinstance(python, str):
        print(f"Kernel Tuner's strategies are not compared: {python}")
    tally = Tally()
    for space, strategies in _spaces():
        if ONLY in space.name:
            _bench(space, None if isinstance(python, str) else python, strategies, tally)
    tally.show()


def _bench(space: Any, python: Path | None, strategies: tuple[str, ...], tally: Tally) -> None:
    print(f"\n{space.name}: {space.count} configurations, {space.failed} failed; {RUNS} runs each")
    print(f"  {'evaluations':24}" + "".join(f"{level:>24}" for level in LEVELS))
    jobs = [(sys.executable, "search_runs.py", name) for name in OURS]
    if python is not None and space.plain:
        jobs += [(str(python), "tune_simulated.py", name) for name in strategies]
    fractions: dict[str, Fractions] = {}
    with ThreadPoolExecutor(2) as pool:
        for (_, script, name), found in zip(jobs, pool.map(lambda job: _run(space, *job), jobs), strict=True):
            label = name if script == "search_runs.py" else f"KT {name}"
            if isinstance(found, str):
                print(f"  {label:24} failed: {found}")
                continue
            fractions[label] = statistics.at_levels(found.curves, space.optimum, LEVELS)
            _show(label, fractions[label], f"{found.cpu_s / RUNS:.2f} CPU s a run")
    _compare(fractions, tally)


def _run(space: Any, python: str, script: str, name: str) -> Any:
    job = {"cache": str(space.file), "strategy": name, "seed": 0, "runs": RUNS, "evaluations": LEVELS[-1]}
    # What is this project's own changes with its code; Kernel Tuner's runs are the same every time.
    kept = DATA / "tuner-runs" if script == "tune_simulated.py" else None
    return tuner.run_job(python, script, job, kept=kept)


def _show(name: str, fractions: Fractions, remark: str) -> None:
    low, middle, high = np.quantile(fractions, [0.25, 0.5, 0.75], axis=0)
    cells = "".join(
        f"{f'{m:.3f} ({a:.3f} to {b:.3f})':>24}" for a, m, b in zip(low, middle, high, strict=True)
    )
    print(f"  {name:24}{cells}  {remark}", flush=True)


def _compare(fractions: Mapping[str, Fractions], tally: Tally) -> None:
    """Offline against random, greedy and, at each budget, the best of Kernel Tuner's there."""
    ours = fractions.get("offline")
    if ours is None:
        return
    theirs: dict[str, list[Fractions]] = {
        name: [fractions[name][:, place] for place in range(len(LEVELS))]
        for name in ("random", "greedy")
        if name in fractions
    }
    tuned = [found for name, found in fractions.items() if name.startswith("KT ")]
    if tuned:
        theirs["Kernel Tuner's best there"] = [
            max((found[:, place] for found in tuned), key=lambda one: (np.median(one), one.mean()))
            for place in range(len(LEVELS))
        ]
    for other, columns in theirs.items():
        found = [statistics.compare(ours[:, place], column) for place, column in enumerate(columns)]
        for one in found:
            tally.add(other, one.word)
        print(f"  offline / {other}: " + "; ".join(f"{one}" for one in found), flush=True)


def _spaces() -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Each space with the strategies of Kernel Tuner's that are run on it."""
    few = tuner.STRATEGIES if os.environ.get("BENCH_TUNER") == "all" else FEW
    recorder = _sibling("record_spaces")
    left = float(os.environ.get("BENCH_RECORD_S", "1800"))
    for one in recorder.SPACES:
        began = time.perf_counter()
        file, done, count = recorder.record(one, DATA / "spaces", budget_s=left)
        left = max(0.0, left - (time.perf_counter() - began))
        if done < count:
            print(f"\n{one.name}: {done} of {count} configurations recorded so far; run again to go on")
        else:
            yield spaces.given(f"{one.name} (recorded here)", file, DATA / "closed"), tuner.STRATEGIES
    for name, (lists, times) in _made_up():
        file = spaces.write_made_up(name, lists, times, DATA / "made-up")
        yield spaces.given(name, file, DATA / "closed"), few
    for name in filter(None, os.environ.get("BENCH_FILES", "").split(":")):
        yield spaces.given(name, Path(name), DATA / "closed"), tuner.STRATEGIES


def _made_up() -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name, make in _sibling("synthetic_spaces").SYNTHETIC.items():
        yield name, make()
    kinds = _sibling("synthetic_kinds")
    for kind in kinds.KINDS:
        yield f"{kind} kind", kinds.draw_kind(kind, SEED)
