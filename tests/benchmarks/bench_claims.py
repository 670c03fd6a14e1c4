"""What the judge's claims are worth: false ones between identical kernels, true differences found.

``python tests/benchmarks claims`` runs a short campaign; these settle its size:

    CLAIMS_AA=300        comparisons of a kernel with itself (0: none)
    CLAIMS_DETECT=10     comparisons for each true difference of 1, 3 and 10 %
    CLAIMS_SECONDS=1500  begin no further comparison after so many seconds
    CLAIMS_LOG=FILE      append every comparison to FILE and begin where it ends

*Measured* figures are of comparisons that ran, each through the judge as a user's would. *Simulated* ones
take pairs from batches of one kernel that were recorded in a row, and put them through the same interval:
many more of them, but of the noise of those seconds alone.
"""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernel_scientist.tools.batches import Fault, Patience
from kernel_scientist.tools.builds import BuildFailure, Building, start_builds
from kernel_scientist.tools.compile_queue import CompileQueue
from kernel_scientist.tools.evaluation import Comparison
from kernel_scientist.tools.judge import Judge
from kernel_scientist.tools.kernel import Kernel
from kernel_scientist.tools.problem import Problem
from kernel_scientist.tools.settings import JudgeSettings, TierSettings
from kernel_scientist.tools.statistics import paired_noise, speedup_interval
from kernel_scientist.tools.targets.cpu import CpuTarget
from kernel_scientist.tools.timing import ShapeTimer

LEVEL, ALLOWANCE = JudgeSettings().level, JudgeSettings().allowance
IDENTICAL, DETECTIONS, SECONDS = 6, 2, 150.0
SLOWER = (0.01, 0.03, 0.10)
SIMULATED, RECORDED = 1000, 150
PROGRESS_S = 60.0

PROBLEM = """
title = "Known work"
description = "y = 2 x, after a number of steps that a kernel takes for nothing."
kernels = ["work.hip"]
distributions = ["normal"]
[inputs]
x = { dtype = "float32", shape = ["n"] }
[outputs]
y = { dtype = "float32", shape = ["n"] }
[domain]
n = { min = 1, max = 262144 }
[tolerance]
rtol = 1e-6
atol = 1e-6
[speed_of_light]
flops = "n"
bytes = "8 * n"
arithmetic = "float32"
[shapes.cpu]
tests = [{ n = 1 }, { n = 300 }]
benchmarks = [{ n = SIZE }]
"""
REFERENCE = """
import numpy as np

def inputs(rng, distribution, n):
    return {"x": rng.standard_normal(n).astype(np.float32)}

def reference(x):
    return {"y": 2 * x.astype(np.float64)}
"""
# A generator of pseudo-random numbers that never reaches zero, which no compiler knows: the loop has to run.
KERNEL = """/* plan
[constants]
STEPS = STEPS_HERE
[[launch]]
kernel = "work"
grid = ["cdiv(n, 256)"]
block = [256]
args = ["x", "y", "n", "STEPS"]
*/
#include <hip/hip_runtime.h>
__global__ void work(const float* x, float* y, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = __float_as_uint(x[i]) | 1u;
  for (int step = 0; step < steps; ++step) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
  }
  y[i] = state == 0u ? 0.0f : 2.0f * x[i];
}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """A kernel by how many elements it has and how many steps it takes for each."""

    name: str
    elements: int
    steps: int


# The compiler does not know the steps, and all counts are multiples of what it may unroll.
SHORT = Size("0.4 ms a run, in registers", 256, 800)
STREAM = Size("0.4 ms a run, in memory", 1 << 18, 2)
LONG = Size("10 ms a run, in registers", 3328, 1600)
SIZES = (SHORT, STREAM, LONG)


@dataclass(slots=True)
class Tally:
    """Comparisons made so far, by what was compared, each as it stands in the log."""

    path: Path | None
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            self.rows = [json.loads(line) for line in self.path.read_text().splitlines()]

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """The chance of at most that many successes."""
    return math.fsum(
        math.comb(trials, k) * chance**k * (1.0 - chance) ** (trials - k) for k in range(successes + 1)
    )


def upper_bound(successes: int, trials: int, level: float = 0.95) -> float:
    """Clopper and Pearson's one-sided upper bound for the chance of a success."""
    if successes >= trials:
        return 1.0
    low, high = successes / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if binomial_tail(successes, trials, middle) > 1.0 - level else (low, middle)
        )
    return high


def lower_bound(successes: int, trials: int, level: float = 0.95) -> float:
    """Clopper and Pearson's one-sided lower bound for the chance of a success."""
    return 1.0 - upper_bound(trials - successes, trials, level)


@dataclass(slots=True)
class Bench:
    """A judge for one size of kernel; `folder` holds its problem."""

    size: Size
    folder: Path
    target: CpuTarget = field(init=False)
    judge: Judge = field(init=False)
    copies: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        (self.folder / "problem.toml").write_text(PROBLEM.replace("SIZE", str(self.size.elements)))
        (self.folder / "reference.py").write_text(REFERENCE)
        (self.folder / "work.hip").write_text(self.source(0.0))
        problem = Problem.load(self.folder)
        self.target = CpuTarget()
        self.judge = Judge(problem, self.target, Kernel.load(problem.default_kernel))

    def source(self, slower: float) -> str:
        return KERNEL.replace("STEPS_HERE", str(round(self.size.steps * (1.0 + slower))))

    def compare(self, slower: float) -> dict[str, Any]:
        """A against B, which has so much more to do: 0 is the same kernel under another name."""
        self.copies += 1
        a = Kernel.parse(self.source(0.0))
        b = Kernel.parse(f"{self.source(slower)}// copy {self.copies % 4}\n")
        began = time.perf_counter()
        comparison = self.judge.compare(a, b)
        seconds = time.perf_counter() - began
        return self.row(comparison, slower, seconds)

    def row(self, comparison: Comparison, slower: float, seconds: float) -> dict[str, Any]:
        speedup = comparison.speedup
        timing = comparison.timings[0]
        return {
            "size": self.size.name,
            "slower": slower,
            "ratio": speedup.value,
            "low": speedup.low,
            "high": speedup.high,
            "level": speedup.level,
            "pairs": timing.batches,
            "noise": timing.noise,
            "seconds": seconds,
            "timing_s": comparison.b.seconds.get("timing"),
            "load": os.getloadavg()[0],
            "notes": [note for note in comparison.b.notes if "busy" in note or "steady" in note],
        }


def claims(row: dict[str, Any]) -> bool:
    return bool(row["low"] > 1.0 or row["high"] < 1.0)


def report(tally: Tally) -> None:
    print("measured:")
    for slower in (0.0, *SLOWER):
        for size in SIZES:
            rows = [row for row in tally.rows if (row["size"], row["slower"]) == (size.name, slower)]
            if rows:
                print(f"  {size.name}: {summary(rows, slower)}", flush=True)
    same = [row for row in tally.rows if row["slower"] == 0.0]
    if same:
        print(f"  all identical kernels: {summary(same, 0.0)}", flush=True)


def summary(rows: Sequence[dict[str, Any]], slower: float) -> str:
    """Rate with its bound, cost and noise of some comparisons of the same two kernels."""
    count = len(rows)
    seconds = sum(row["seconds"] for row in rows) / count
    pairs = sum(row["pairs"] for row in rows) / count
    noise = sum(row["noise"] for row in rows) / count
    load = sum(row["load"] for row in rows) / count
    cost = f"{seconds:.1f} s each, {pairs:.0f} pairs, noise of a pair {noise:.1%}, load {load:.1f}"
    if slower == 0.0:
        false = sum(map(claims, rows))
        bound = upper_bound(false, count)
        return (
            f"A/A: {false} false claims in {count} at {LEVEL:.0%}, "
            f"at most {bound:.1%} with 95 % confidence (Clopper-Pearson); {cost}"
        )
    found = sum(row["high"] < 1.0 for row in rows)
    wrong = sum(row["low"] > 1.0 for row in rows)
    true = 1.0 / (1.0 + slower)
    covered = sum(row["low"] <= true <= row["high"] for row in rows)
    ratio = sorted(row["ratio"] for row in rows)[count // 2]
    return (
        f"{slower:.0%} slower: found in {found} of {count}, at least {lower_bound(found, count):.0%} with "
        f"95 % confidence; wrong way in {wrong}; true ratio {true:.4f} within {covered} intervals, "
        f"median estimate {ratio:.4f}; {cost}"
    )


def recorded(bench: Bench) -> list[float]:
    """Seconds a run of many batches of one kernel, one after the other, each in a fresh worker."""
    device, problem = bench.target, bench.judge.problem
    (shape,) = problem.shapes[device.target_class].benchmarks
    building = start_builds(bench.judge.baseline, problem, [shape], (), device, CompileQueue())
    assert isinstance(building, Building)
    builds = building.builds()
    assert not isinstance(builds, BuildFailure)
    timer = ShapeTimer(device, problem, JudgeSettings(), np.random.default_rng())
    patience = Patience(20.0, 0.0)
    with device.exclusive():
        pilot = timer.pilot(shape, builds, patience)
        assert not isinstance(pilot, Fault), pilot
        tier = TierSettings(RECORDED, RECORDED, 60.0, 1)
        measured = timer.measure(pilot, builds, tier=tier, left_s=60.0, patience=patience)
    assert not isinstance(measured, Fault), measured
    return list(measured.times_s[0])


def simulate(times: Sequence[float]) -> None:
    """Comparisons whose pairs are neighbours in `times`, in random order, one of each pair made slower."""
    draw = random.Random(1)
    pairs = JudgeSettings().confirm.pairs
    print(
        f"simulated: {SIMULATED} comparisons of {pairs} pairs each, taken from {len(times)} recorded batches "
        f"of one kernel, noise of a pair {paired_noise(times):.1%}:"
    )
    for slower in (0.0, *SLOWER):
        claimed = 0
        for _ in range(SIMULATED):
            start = draw.randrange(len(times) - 2 * pairs + 1)
            values: list[float] = []
            for i in range(start, start + 2 * pairs, 2):
                step = math.log(times[i + 1] / times[i])
                values.append(draw.choice((step, -step)) - math.log1p(slower))
            interval = speedup_interval(values, LEVEL, allowance=ALLOWANCE)
            claimed += interval.low > 1.0 or interval.high < 1.0
        print(f"  {slower:.0%} slower: a difference is claimed in {claimed / SIMULATED:.1%}", flush=True)


def schedule(identical: int, detections: int) -> list[tuple[Size, float]]:
    """Every comparison of the campaign, the kinds mixed so that a campaign cut short has some of each."""
    plan = [(i / max(1, identical), (SHORT, STREAM)[i % 2], 0.0) for i in range(identical)]
    for size in (SHORT, LONG):
        for slower in SLOWER:
            plan += [(i / max(1, detections), size, slower) for i in range(detections)]
    return [(size, slower) for _, size, slower in sorted(plan, key=lambda one: one[0])]


def left(plan: Sequence[tuple[Size, float]], tally: Tally) -> list[tuple[Size, float]]:
    """What of the plan is not in the log yet."""
    done = Counter((row["size"], row["slower"]) for row in tally.rows)
    missing: list[tuple[Size, float]] = []
    for size, slower in plan:
        if done[size.name, slower] > 0:
            done[size.name, slower] -= 1
        else:
            missing.append((size, slower))
    return missing


def main() -> None:
    identical = int(os.environ.get("CLAIMS_AA", IDENTICAL))
    detections = int(os.environ.get("CLAIMS_DETECT", DETECTIONS))
    deadline = time.monotonic() + float(os.environ.get("CLAIMS_SECONDS", SECONDS))
    log = os.environ.get("CLAIMS_LOG")
    tally = Tally(Path(log) if log else None)
    with tempfile.TemporaryDirectory(prefix="kernel-scientist-claims-") as home:
        benches = {size.name: Bench(size, Path(home) / f"p{i}") for i, size in enumerate(SIZES)}
        told = time.monotonic()
        for size, slower in left(schedule(identical, detections), tally):
            if time.monotonic() > deadline:
                print("stopped by CLAIMS_SECONDS")
                break
            tally.add(benches[size.name].compare(slower))
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                report(tally)
        report(tally)
        simulate(recorded(benches[SHORT.name]))


if __name__ == "__main__":
    main()
