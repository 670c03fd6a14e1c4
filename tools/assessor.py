"""The judge's order on a device of this machine: text, build, correctness, time, physics, comparison.

Covered: inputs and held-out shapes are drawn after the source is fixed; every batch is a fresh worker,
so nothing a kernel keeps survives from one phase to the next; all decisions rest on buffers and a clock
that the worker does not hold. Not covered: what the cage lets through; see sandbox/.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from kernel_scientist.sandbox.errors import UsageError

from .batches import Fault, Patience, shape_text
from .builds import Build, BuildFailure, Builds, build
from .conclusions import baseline_broke, claim, implausible, no_comparison, noise, slowness
from .correctness import CorrectnessPlan, check_correctness
from .evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict
from .kernel import Kernel
from .problem import Problem, Shapes
from .roofline import Bound, speed_of_light
from .settings import JudgeSettings, Tier
from .statistics import geometric_mean_speedup, quartiles, speedup_interval
from .targets.base import Device, Target
from .text import clean
from .timing import Measurement, Pilot, ShapeTimer, number_of_pairs

__all__ = ["LocalAssessor"]

Shape = Mapping[str, int]
_MAX_LOG = 20_000
_STAGES = {
    Verdict.INVALID_PLAN: "plan",
    Verdict.REJECTED: "policy",
    Verdict.COMPILE_ERROR: "compile",
    Verdict.LAUNCH_ERROR: "launch limits",
}


@dataclass(slots=True)
class _Case:
    """One kernel before the judge, and what is found on the way. Without a tier nothing is timed."""

    kernel: Kernel
    baseline: Kernel | None
    tier: Tier | None
    rng: np.random.Generator
    checks: list[Check] = field(default_factory=list[Check])
    timings: list[ShapeTiming] = field(default_factory=list[ShapeTiming])
    notes: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    builds: Builds | None = None
    speedup: Interval | None = None

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


@final
class LocalAssessor:
    """Evaluates kernels on `device`, which `target` presents to the outside."""

    def __init__(
        self,
        target: Target,
        device: Device,
        problem: Problem,
        settings: JudgeSettings,
        seeds: np.random.SeedSequence,
    ) -> None:
        self._target = target
        self._device = device
        self._problem = problem
        self._settings = settings
        self._seeds = seeds
        self._shapes = _shapes(problem, target.target_class)
        # Seconds a run of a kernel took at one stage: what a candidate's time limits are relative to.
        self._run_s: dict[tuple[str, str], float] = {}

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        return self._evaluate(kernel, baseline, tier)

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        first = self._evaluate(a, None, None)
        if not first.accepted:
            return no_comparison(first, self._evaluate(b, None, None), self._settings.level, "A")
        second = self._evaluate(b, a, "confirm")
        if not second.accepted or second.speedup is None:
            return no_comparison(first, second, self._settings.level, "B")
        return Comparison(first, second, second.timings, second.speedup, claim(second.speedup))

    def _evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier | None) -> Evaluation:
        # Drawn when the kernel's text can no longer change: shapes, inputs, the order of batches.
        case = _Case(kernel, baseline, tier, np.random.default_rng(self._seeds.spawn(1)[0]))
        with case.stage("total"):
            fault = self._assess(case)
        builds = case.builds
        log = fault.log if fault is not None and fault.log else builds.log if builds is not None else ""
        return Evaluation(
            verdict=Verdict.ACCEPTED if fault is None else fault.verdict,
            message="" if fault is None else clean(fault.message),
            tier=tier or "screen",
            target=self._target.name,
            device=self._target.device,
            sandbox=self._target.sandbox,
            baseline_key=(baseline or kernel).key,
            kernel_key=kernel.key,
            checks=tuple(case.checks),
            timings=tuple(case.timings),
            speedup=case.speedup,
            resources=builds.resources if builds is not None else (),
            resources_note=builds.resources_note if builds is not None else "",
            compile_log=clean(log, _MAX_LOG),
            notes=(*self._device.notes, *case.notes),
            seconds=case.seconds,
        )

    def _assess(self, case: _Case) -> Fault | None:
        plan = self._correctness_plan(case.rng)
        with case.stage("compile"):
            built = self._build(case.kernel, [*plan.shapes, *self._shapes.benchmarks])
            rivals = self._rivals(case)
        if isinstance(built, BuildFailure):
            case.checks.append(Check(_STAGES.get(built.verdict, "compile"), False, built.message))
            return Fault(built.verdict, built.message, log=built.log)
        case.builds = built
        case.checks.append(Check("compile", True, built.resources_note))
        tests = len(plan.shapes)
        contenders = [[own, *rivals[i : i + 1]] for i, own in enumerate(built.builds[tests:])]
        with self._device.exclusive():
            with case.stage("correctness"):
                fault = self._correct(case, plan, built.builds[:tests])
            if fault is not None or case.tier is None:
                return fault
            with case.stage("timing"):
                measured = self._measure(case, case.tier, contenders)
        return self._conclude(case, measured)

    def _build(self, kernel: Kernel, shapes: Sequence[Shape]) -> Builds | BuildFailure:
        # One shape of an MI300 and one of this device: what runs here must compile there as well.
        gpu = self._problem.shapes.get("mi300")
        reported = [*(gpu.benchmarks[:1] if gpu is not None else ()), self._shapes.benchmarks[0]]
        return build(kernel, self._problem, shapes, reported, self._device)

    def _rivals(self, case: _Case) -> Sequence[Build]:
        """The baseline's builds for the benchmark shapes."""
        if case.baseline is None:
            return ()
        builds = self._build(case.baseline, self._shapes.benchmarks)
        if isinstance(builds, BuildFailure):
            raise baseline_broke(case.baseline, builds.message)
        return builds.builds

    def _correctness_plan(self, rng: np.random.Generator) -> CorrectnessPlan:
        tests = self._shapes.tests
        settings = self._settings
        drawn = [
            self._problem.random_shape(rng, self._target.target_class, settings.held_out_elements)
            for _ in range(settings.held_out_shapes)
        ]
        names = ("test shape",) * len(tests) + ("held-out shape",) * len(drawn)
        return CorrectnessPlan((*tests, *drawn), names)

    def _correct(self, case: _Case, plan: CorrectnessPlan, builds: Sequence[Build]) -> Fault | None:
        result = check_correctness(
            self._device,
            self._problem,
            plan,
            builds,
            case.rng,
            patience=self._patience(case.baseline, "tests"),
            memory_bytes=self._settings.memory_bytes,
        )
        case.checks.extend(result.checks)
        if result.fault is None:
            self._run_s[case.kernel.key, "tests"] = result.slowest_s
        return result.fault

    def _patience(self, baseline: Kernel | None, stage: str) -> Patience:
        """How long to wait for a batch: relative to the baseline where its time is known."""
        known = self._run_s.get((baseline.key, stage)) if baseline is not None else None
        if known is None:
            return Patience(self._settings.baseline_timeout_s, 0.0)
        return Patience(self._settings.timeout_s, known * self._settings.timeout_factor)

    def _measure(
        self, case: _Case, tier: Tier, contenders: Sequence[Sequence[Build]]
    ) -> list[Measurement] | Fault:
        """Pilots on every shape, then the pairs of every shape: as many as the pilots say are affordable."""
        timer = ShapeTimer(self._device, self._problem, self._settings, case.rng)
        limits = self._settings.tier(tier)
        waits = [self._patience(case.baseline, shape_text(shape)) for shape in self._shapes.benchmarks]
        pilots: list[Pilot] = []
        began = time.perf_counter()
        for shape, builds, patience in zip(self._shapes.benchmarks, contenders, waits, strict=True):
            pilot = timer.pilot(shape, builds, patience)
            if isinstance(pilot, Fault):
                return pilot
            pilots.append(pilot)
        pairs = number_of_pairs(pilots, limits, time.perf_counter() - began)
        measured: list[Measurement] = []
        for pilot, builds, patience in zip(pilots, contenders, waits, strict=True):
            answer = timer.measure(
                pilot,
                builds,
                pairs=limits.least_pairs if pilot.cut_short else pairs,
                checked_runs=limits.checked_runs,
                patience=patience,
            )
            if isinstance(answer, Fault):
                return answer
            measured.append(answer)
        return measured

    def _conclude(self, case: _Case, measured: list[Measurement] | Fault) -> Fault | None:
        if isinstance(measured, Fault):
            if measured.contender > 0 and case.baseline is not None:
                raise baseline_broke(case.baseline, measured.message)
            case.checks.append(Check("benchmark shapes", False, measured.message))
            return measured
        settings = self._settings
        for shape, one in zip(self._shapes.benchmarks, measured, strict=True):
            where = shape_text(shape)
            timing = self._timing(shape, one)
            self._run_s[case.kernel.key, where] = timing.high_us / 1e6
            case.timings.append(timing)
            fault = implausible(timing, settings.plausible_share)
            if fault is not None:
                case.checks.append(Check(f"benchmark shape {where}", False, fault.message))
                return fault
            case.checks.append(Check(f"benchmark shape {where}", True, "right in every batch that was timed"))
            case.notes.extend(slowness(timing, settings.slow_factor))
        case.notes.extend(noise(case.timings, settings.noisy_spread))
        if case.baseline is None:
            case.speedup = Interval(1.0, 1.0, 1.0, settings.level)
        else:
            case.speedup = geometric_mean_speedup([one.log_ratios() for one in measured], settings.level)
        return None

    def _timing(self, shape: Shape, measured: Measurement) -> ShapeTiming:
        low, median, high = quartiles(measured.times_s[0])
        bound = self._bound(shape, measured.runs[0], median * 1e6)
        timing = ShapeTiming(
            shape=dict(shape),
            time_us=median * 1e6,
            low_us=low * 1e6,
            high_us=high * 1e6,
            batches=len(measured.times_s[0]),
            launches_per_batch=measured.runs[0],
            bound_us=bound.time_us if bound is not None else None,
            bound_by=bound.by if bound is not None else None,
        )
        if len(measured.times_s) == 1:
            return timing
        return replace(
            timing,
            baseline_us=quartiles(measured.times_s[1])[1] * 1e6,
            speedup=speedup_interval(measured.log_ratios(), self._settings.level),
        )

    def _bound(self, shape: Shape, runs: int, time_us: float) -> Bound | None:
        roofline = self._device.roofline()
        if roofline is None:
            return None
        bound = speed_of_light(self._problem, shape, roofline, runs=runs)
        if time_us < bound.time_us * self._settings.plausible_share:
            # Before a kernel is called impossible, the machine gets a chance to show that it is faster.
            roofline = self._device.roofline(again=True)
            assert roofline is not None
            bound = speed_of_light(self._problem, shape, roofline, runs=runs)
        return bound


def _shapes(problem: Problem, target_class: str) -> Shapes:
    shapes = problem.shapes.get(target_class)
    if shapes is None:
        raise UsageError(
            f"{problem.folder / 'problem.toml'}: has no shapes for this target; add [shapes.{target_class}]"
        )
    return shapes
