"""A recorded search space as a target: the times of other people's devices played back, nothing is run.

A kernel is looked up by its constants. One that differs in anything else is refused, since the recording
says nothing of it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import final

import numpy as np

from kernel_scientist.sandbox.errors import UsageError

from ..errors import PlanError
from ..evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict
from ..kernel import Kernel
from ..problem import RECORDED, Problem
from ..recorded_problem import parameters_of, recorded_kernel, shape_of, write_recorded_problem
from ..recording import Recording, Row, Value, load_recording
from ..settings import JudgeSettings, Tier
from ..statistics import median_interval, quartiles

__all__ = ["RecordedTarget"]

_MICROSECONDS = 1000.0


@final
class RecordedTarget:
    """Plays back the recording in `file`. UsageError when the file is none.

    `problem` is what it can judge, and nothing else.
    """

    target_class = "recorded"
    sandbox = "none (nothing is run)"

    def __init__(self, file: str | Path) -> None:
        self.recording: Recording = load_recording(file)
        self.name = f"{RECORDED}{file}"

    @property
    def device(self) -> str:
        return f"{self.recording.device} (times recorded in {self.recording.path.name}, not measured here)"

    @property
    def notes(self) -> tuple[str, ...]:
        said = f"times are those that {self.recording.path.name} records of {self.recording.device}"
        notes = [f"{said}; nothing was compiled, run or checked here"]
        if self.recording.unfinished:
            notes.append("the recording's writer did not finish: it may lack configurations of the space")
        return tuple(notes)

    def problem(self) -> Problem:
        """The problem made from the recording, in a folder of the cache."""
        return Problem.load(write_recorded_problem(self.recording))

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> _RecordedAssessor:
        del seeds
        if problem.key != self.problem().key:
            raise UsageError(
                f"problem '{problem.name}' is not what {self.recording.path} recorded; leave the problem out"
            )
        return _RecordedAssessor(self, settings)


@final
class _RecordedAssessor:
    def __init__(self, target: RecordedTarget, settings: JudgeSettings) -> None:
        self._target = target
        self._rows = target.recording.rows
        self._parameters = parameters_of(target.recording)
        self._template = Kernel.parse(recorded_kernel(target.recording))
        self._shape = shape_of(target.recording)
        self._level = settings.level

    def prepare(self, kernel: Kernel) -> None:
        """There is nothing to compile."""

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        """A kernel that is more than other constants."""
        try:
            same = self._template.with_constants(kernel.plan.constants)
        except PlanError as error:
            return self._evaluation(kernel, baseline, tier, Verdict.INVALID_PLAN, error.message)
        if same.source.strip() == kernel.source.replace("\r\n", "\n").strip():
            return None
        message = (
            "a recording knows configurations only: change the values under [constants] and leave the rest "
            "of the file as it is"
        )
        return self._evaluation(kernel, baseline, tier, Verdict.REJECTED, message)

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        refused = self.refuse(kernel, baseline or kernel, tier)
        if refused is not None:
            return refused
        point = self._point(kernel)
        row = self._row(point)
        if row is None:
            return self._evaluation(
                kernel, baseline, tier, Verdict.INVALID_PLAN, f"the recording {self._unknown(point)}"
            )
        if row.verdict is not Verdict.ACCEPTED:
            said = f"the recording says '{row.failure}' of this configuration ({self._words(point)})"
            return self._evaluation(kernel, baseline, tier, row.verdict, said)
        reference = None if baseline is None else self._row(self._point(baseline))
        return self._timed(kernel, baseline, tier, row, reference)

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        first, second = self.evaluate(a, None, "confirm"), self.evaluate(b, a, "confirm")
        speedup = second.speedup if first.accepted else None
        if speedup is None:
            return Comparison(first, second, (), Interval(1.0, 0.0, math.inf, self._level), "no claim")
        faster = "faster" if speedup.low > 1 else "slower" if speedup.high < 1 else "not told apart"
        claim = f"by the recording B is {faster}: {speedup.value:.3g} times as fast as A; not measured again"
        return Comparison(first, second, second.timings, speedup, claim)

    def _timed(
        self, kernel: Kernel, baseline: Kernel | None, tier: Tier, row: Row, reference: Row | None
    ) -> Evaluation:
        speedup = _ratio(reference or row, row, self._level)
        repeats = len(row.times_ms)
        low, middle, high = (one * _MICROSECONDS for one in quartiles(row.times_ms))
        timing = ShapeTiming(
            shape=dict(self._shape),
            time_us=middle,
            low_us=low,
            high_us=high,
            batches=repeats,
            launches_per_batch=1,
            baseline_us=None if reference is None else reference.time_ms * _MICROSECONDS,
            speedup=None if reference is None else speedup,
        )
        made = self._evaluation(kernel, baseline, tier, Verdict.ACCEPTED, "")
        notes = made.notes
        if min(repeats, len((reference or row).times_ms)) < 2:
            notes += ("the recording repeats no measurement: how uncertain the speed-up is, is not known",)
        if baseline is None or baseline.key == kernel.key:
            speedup = Interval(1.0, 1.0, 1.0, self._level)
        return replace(
            made,
            checks=(
                Check("recorded", True, f"a time is recorded, of {repeats} repeats; nothing was checked"),
            ),
            timings=(timing,),
            speedup=speedup,
            notes=notes,
        )

    def _evaluation(
        self, kernel: Kernel, baseline: Kernel | None, tier: Tier, verdict: Verdict, message: str
    ) -> Evaluation:
        failed = verdict is not Verdict.ACCEPTED
        return Evaluation(
            verdict=verdict,
            message=message,
            tier=tier,
            target=self._target.name,
            device=self._target.device,
            sandbox=self._target.sandbox,
            baseline_key=(baseline or kernel).key,
            kernel_key=kernel.key,
            checks=(Check("recorded", False, message),) if failed else (),
            resources_note="a recording holds no code to compile for gfx942",
            notes=self._target.notes,
            method="median of the recorded repeats; the interval of a ratio of medians, by order statistics",
        )

    def _point(self, kernel: Kernel) -> tuple[Value | None, ...]:
        return tuple(one.value(kernel.plan.constants[one.constant]) for one in self._parameters)

    def _row(self, point: tuple[Value | None, ...]) -> Row | None:
        known = tuple(value for value in point if value is not None)
        return self._rows.get(known) if len(known) == len(point) else None

    def _words(self, point: tuple[Value | None, ...]) -> str:
        return ", ".join(
            f"{one.constant} = {one.code(value)}"
            for one, value in zip(self._parameters, point, strict=True)
            if value is not None
        )

    def _unknown(self, point: tuple[Value | None, ...]) -> str:
        """Half a sentence on a configuration without a row, with the nearest that has one."""
        strange = [one.constant for one, value in zip(self._parameters, point, strict=True) if value is None]
        if strange:
            return f"has no such value of {', '.join(strange)}; the values it has stand under [tune]"
        nearest = max(self._rows, key=lambda row: sum(a == b for a, b in zip(row, point, strict=True)))
        differing = {
            one.constant: one.code(value)
            for one, value, had in zip(self._parameters, nearest, point, strict=True)
            if value != had
        }
        changes = ", ".join(f"{name} = {value}" for name, value in differing.items())
        return f"has no configuration {self._words(point)}; the nearest that it has is {changes}"


def _ratio(reference: Row, row: Row, level: float) -> Interval:
    """Time of `reference` over time of `row`, from intervals of both medians at half the error each."""
    each = 1.0 - (1.0 - level) / 2
    above, below = median_interval(reference.times_ms, each), median_interval(row.times_ms, each)
    covered = max(0.0, above.level + below.level - 1.0)
    return Interval(above.value / below.value, above.low / below.high, above.high / below.low, covered)
