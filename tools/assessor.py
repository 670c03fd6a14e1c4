"""The judge's order on a device of this machine: text, build, correctness, time, physics, comparison.

Covered: inputs and held-out shapes are drawn after the source is fixed; every batch is a fresh worker,
so nothing a kernel keeps survives from one phase to the next; all decisions rest on buffers and a clock
that the worker does not hold. Not covered: what the cage lets through; see sandbox/.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np

from kernel_scientist.sandbox.errors import DeviceLost, UsageError

from .batches import Fault, Patience, shape_text
from .builds import NOTHING, Build, BuildFailure, Building, Report, bind_all, start_builds
from .compile_queue import CompileQueue
from .conclusions import baseline_broke, busy, claim, implausible, method, no_comparison, noise, slowness
from .correctness import CorrectnessPlan, check_correctness
from .evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict
from .kernel import Kernel
from .problem import Problem
from .problem_parts import Shapes
from .roofline import Bound, speed_of_light
from .settings import JudgeSettings, Tier
from .statistics import geometric_mean_speedup, quartiles, speedup_interval
from .targets.base import Device, Target
from .text import clean
from .timing import Measurement, ShapeTimer, measure_shapes

__all__ = ["LocalAssessor"]

Shape = Mapping[str, int]
_MAX_LOG = 20_000
# A run's buffers, and their copies: what was drawn, the reference's values and tolerances in float64.
_COPIES = 6
# A kernel under which so many devices are lost has to do with it.
_MOST_LOST = 2
_STAGES = {
    Verdict.INVALID_PLAN: "plan",
    Verdict.REJECTED: "policy",
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
    report: Report = NOTHING
    compile_log: str = ""
    method: str = ""
    speedup: Interval | None = None
    lost: tuple[str, ...] = ()

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
        _check_memory(problem, self._shapes)
        self._queue = CompileQueue()
        # Seconds a run of a kernel took at one stage: what a candidate's time limits are relative to.
        self._run_s: dict[tuple[str, str], float] = {}

    def prepare(self, kernel: Kernel) -> None:
        shapes = (*self._shapes.tests, *self._shapes.benchmarks)
        self._queue.submit(("prepare", kernel.key), partial(self._build, kernel, shapes, urgent=False))

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        listed = (*self._shapes.tests, *self._shapes.benchmarks)
        found = bind_all(kernel, self._problem, listed, self._settings.scratch_bytes)
        if not isinstance(found, BuildFailure):
            return None
        case = _Case(kernel, baseline, tier, np.random.default_rng())
        return self._evaluation(case, _unbuilt(case, found))

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        return self._evaluate(kernel, baseline, tier)

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        self.prepare(b)
        first = self._evaluate(a, None, None)
        if not first.accepted:
            return no_comparison(first, self._evaluate(b, None, None), self._settings.level, "A")
        second = self._evaluate(b, a, "confirm")
        if not second.accepted or second.speedup is None:
            return no_comparison(first, second, self._settings.level, "B")
        return Comparison(first, second, second.timings, second.speedup, claim(second.speedup))

    def _evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier | None) -> Evaluation:
        lost: list[DeviceLost] = []
        while True:
            # Drawn when the kernel's text can no longer change: shapes, inputs, the order of batches.
            case = _Case(kernel, baseline, tier, np.random.default_rng(self._seeds.spawn(1)[0]))
            case.lost = tuple(map(str, lost))
            try:
                with case.stage("total"):
                    fault = self._assess(case)
            except DeviceLost as error:
                # Another device goes on, from the beginning: times of two devices are not to be mixed.
                lost.append(error)
                if sum(one.under_kernel for one in lost) < _MOST_LOST:
                    continue
                fault = Fault(Verdict.CRASHED, f"{_MOST_LOST} devices were lost while it ran: {error}")
            return self._evaluation(case, fault)

    def _evaluation(self, case: _Case, fault: Fault | None) -> Evaluation:
        kernel, baseline = case.kernel, case.baseline
        log = fault.log if fault is not None and fault.log else case.compile_log
        return Evaluation(
            verdict=Verdict.ACCEPTED if fault is None else fault.verdict,
            message="" if fault is None else clean(fault.message),
            tier=case.tier or "screen",
            target=self._target.name,
            device=self._target.device,
            sandbox=self._target.sandbox,
            baseline_key=(baseline or kernel).key,
            kernel_key=kernel.key,
            checks=tuple(replace(check, detail=clean(check.detail)) for check in case.checks),
            timings=tuple(case.timings),
            speedup=case.speedup,
            resources=case.report.resources,
            resources_note=case.report.note,
            compile_log=clean(log, _MAX_LOG),
            notes=(*self._device.notes, *case.lost, *case.notes),
            begun_anew=case.lost,
            seconds=case.seconds,
            method=case.method,
        )

    def _assess(self, case: _Case) -> Fault | None:
        plan = self._correctness_plan(case.rng)
        benchmarks = self._shapes.benchmarks
        with case.stage("compile"):
            building = self._build(case.kernel, [*plan.shapes, *benchmarks])
            if isinstance(building, BuildFailure):
                return _unbuilt(case, building)
            built = building.builds()
        if isinstance(built, BuildFailure):
            return _unbuilt(case, built)
        case.checks.append(Check("compile", True, built[0].code.compiler))
        case.compile_log = built[0].code.log
        tests = len(plan.shapes)
        with self._device.exclusive(), case.stage("correctness"):
            fault = self._correct(case, plan, built[:tests])
        if fault is not None:
            case.report = building.report_so_far()
            return fault
        fault = self._report(case, building)
        if fault is not None or case.tier is None:
            return fault
        rivals = self._rivals(case)
        contenders = [[own, *rivals[i : i + 1]] for i, own in enumerate(built[tests:])]
        with self._device.exclusive(), case.stage("timing"):
            measured = self._measure(case, case.tier, contenders)
        return self._conclude(case, measured)

    def _report(self, case: _Case, building: Building) -> Fault | None:
        """What the gfx942 compiler says, which has worked while the device's builds were checked."""
        with case.stage("gfx942"):
            report = building.report()
        if isinstance(report, BuildFailure):
            return _unbuilt(case, report, "gfx942 compile")
        case.report = report
        case.checks.append(Check("gfx942 compile", True, report.note))
        case.compile_log = "\n".join(text for text in (case.compile_log, report.log) if text)
        return None

    def _build(
        self, kernel: Kernel, shapes: Sequence[Shape], *, urgent: bool = True, report: bool = True
    ) -> Building | BuildFailure:
        # One shape of an MI300 and one of this device: what runs here must compile there as well.
        gpu = self._problem.shapes.get("mi300")
        reported = [*(gpu.benchmarks[:1] if gpu is not None else ()), self._shapes.benchmarks[0]]
        return start_builds(
            kernel,
            self._problem,
            shapes,
            reported if report else (),
            self._device,
            self._queue,
            urgent=urgent,
            scratch_bytes=self._settings.scratch_bytes,
        )

    def _rivals(self, case: _Case) -> Sequence[Build]:
        """The baseline's builds for the benchmark shapes."""
        if case.baseline is None:
            return ()
        building = self._build(case.baseline, self._shapes.benchmarks, report=False)
        builds = building if isinstance(building, BuildFailure) else building.builds()
        if isinstance(builds, BuildFailure):
            raise baseline_broke(case.baseline, builds.message)
        return builds

    def _correctness_plan(self, rng: np.random.Generator) -> CorrectnessPlan:
        tests = self._shapes.tests
        settings = self._settings
        drawn = [
            self._problem.random_shape(rng, self._target.target_class, settings.held_out_elements)
            for _ in range(settings.held_out_shapes - 1)
        ]
        if settings.held_out_shapes > 0:
            # As large as what is timed, so that nothing depends on a size that the tests do not reach.
            drawn.append(
                self._problem.neighbour_shape(rng, self._target.target_class, settings.neighbour_elements)
            )
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
        """The times on every benchmark shape, and a note when something else had the machine meanwhile."""
        timer = ShapeTimer(self._device, self._problem, self._settings, case.rng)
        shapes = self._shapes.benchmarks
        patience = [self._patience(case.baseline, shape_text(shape)) for shape in shapes]
        before = self._device.load()
        measured = measure_shapes(timer, shapes, contenders, patience, self._settings.tier(tier))
        after = self._device.load()
        if not isinstance(measured, Fault):
            strain = before.until(after) if before is not None and after is not None else None
            waited = [one.waited for one in measured if one.waited is not None]
            case.notes.extend(busy(before, strain, max(waited, default=None), self._settings.busy_share))
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
        case.method = method(measured, self._device.caches)
        case.notes.extend(noise(measured, settings.noisy_spread))
        if case.baseline is None:
            case.speedup = Interval(1.0, 1.0, 1.0, settings.level)
        else:
            case.speedup = geometric_mean_speedup(
                [one.log_ratios() for one in measured], settings.level, allowance=settings.allowance
            )
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
            noise=measured.noise,
        )
        if len(measured.times_s) == 1:
            return timing
        return replace(
            timing,
            baseline_us=quartiles(measured.times_s[1])[1] * 1e6,
            speedup=speedup_interval(
                measured.log_ratios(), self._settings.level, allowance=self._settings.allowance
            ),
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


def _unbuilt(case: _Case, failure: BuildFailure, name: str = "compile") -> Fault:
    case.checks.append(Check(_STAGES.get(failure.verdict, name), False, failure.message))
    return Fault(failure.verdict, failure.message, log=failure.log)


def _check_memory(problem: Problem, shapes: Shapes) -> None:
    """UsageError when this machine cannot hold a run's buffers and what the judge makes of them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for shape in (*shapes.tests, *shapes.benchmarks):
        nbytes = sum(buffer.nbytes(shape) for buffer in problem.buffers)
        if nbytes * _COPIES > memory:
            raise UsageError(
                f"{problem.folder / 'problem.toml'}: the buffers for {shape_text(shape)} take {nbytes} bytes "
                f"and the judge needs {_COPIES} times as much of this machine's {memory}; list smaller shapes"
            )


def _shapes(problem: Problem, target_class: str) -> Shapes:
    shapes = problem.shapes.get(target_class)
    if shapes is None:
        raise UsageError(
            f"{problem.folder / 'problem.toml'}: has no shapes for this target; add [shapes.{target_class}]"
        )
    return shapes
