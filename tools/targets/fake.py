"""A target that runs nothing: verdict and time are a function of the kernel's constants.

For tests of what uses a judge. It is not registered and cannot be chosen by name.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ..binding import bind
from ..errors import PlanError
from ..evaluation import Check, Comparison, Evaluation, Interval, ShapeTiming, Verdict
from ..kernel import Kernel
from ..plan import ConstantValue
from ..problem import Problem
from ..settings import JudgeSettings, Tier

__all__ = ["FakeAnswer", "FakeTarget"]

# Half the width of every interval, relative to its value.
_SPREAD = 0.01


@dataclass(frozen=True, slots=True)
class FakeAnswer:
    """What the target says of a kernel; `time_us` is on the first shape, the next take 2, 3 ... times it.

    Where the target is asked by shape, it is the time on that shape. `bound_us` is the speed-of-light time.
    """

    time_us: float = 1000.0
    bound_us: float | None = None
    verdict: Verdict = Verdict.ACCEPTED
    message: str = ""


Script = Callable[[Mapping[str, ConstantValue]], FakeAnswer]


@final
class FakeTarget:
    """Answers from `script`, deterministically; plans are bound, so that a wrong plan still is one.

    The script gets the constants as the plan has them; with `by_shape` it is asked for each shape, and gets
    the constants' values there and the shape's dimensions.
    """

    name = "fake"
    device = "no device (scripted times)"
    sandbox = "none"

    def __init__(self, script: Script, *, target_class: str = "cpu", by_shape: bool = False) -> None:
        self.target_class = target_class
        self._script = script
        self._by_shape = by_shape

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> _FakeAssessor:
        del seeds
        return _FakeAssessor(self, self._script, problem, settings, self._by_shape)


@final
class _FakeAssessor:
    def __init__(
        self, target: FakeTarget, script: Script, problem: Problem, settings: JudgeSettings, by_shape: bool
    ) -> None:
        self._target = target
        self._script = script
        self._by_shape = by_shape
        self._shapes = problem.shapes[target.target_class].benchmarks
        self._problem = problem
        self._level = settings.level

    def prepare(self, kernel: Kernel) -> None:
        """There is nothing to compile."""

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        """Every kernel is evaluated."""

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        answers = self._answers(kernel)
        fault = next((one for one in answers if one.verdict is not Verdict.ACCEPTED), None)
        answer = fault or answers[0]
        accepted = fault is None
        references = answers if baseline is None else self._answers(baseline)
        timings = self._timings(answers, None if baseline is None else references)
        ratio = math.prod(old.time_us / new.time_us for old, new in zip(references, answers, strict=True))
        mean = ratio ** (1 / len(answers))
        speedup = Interval(1.0, 1.0, 1.0, self._level) if baseline is None else self._interval(mean)
        return Evaluation(
            verdict=answer.verdict,
            message=answer.message,
            tier=tier,
            target=self._target.name,
            device=self._target.device,
            sandbox=self._target.sandbox,
            baseline_key=(baseline or kernel).key,
            kernel_key=kernel.key,
            checks=(Check("scripted", accepted, answer.message),),
            timings=timings if accepted else (),
            speedup=speedup if accepted else None,
            resources_note="the fake target compiles nothing",
        )

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        first, second = self.evaluate(a, None, "confirm"), self.evaluate(b, a, "confirm")
        speedup = second.speedup if first.accepted else None
        if speedup is None:
            return Comparison(first, second, (), Interval(1.0, 0.0, float("inf"), self._level), "no claim")
        return Comparison(first, second, second.timings, speedup, f"scripted: {speedup.value:.3g}")

    def _answers(self, kernel: Kernel) -> list[FakeAnswer]:
        """An answer for each shape."""
        try:
            plans = [bind(kernel, self._problem, shape) for shape in self._shapes]
        except PlanError as error:
            return [FakeAnswer(verdict=Verdict.INVALID_PLAN, message=str(error)) for _ in self._shapes]
        if not self._by_shape:
            answer, factors = self._script(kernel.plan.constants), range(1, len(plans) + 1)
            bound = answer.bound_us or 0.0
            return [replace(answer, time_us=answer.time_us * n, bound_us=bound * n or None) for n in factors]
        return [
            self._script({**shape, **{name: ast.literal_eval(text) for name, text in plan.constants}})
            for plan, shape in zip(plans, self._shapes, strict=True)
        ]

    def _interval(self, ratio: float) -> Interval:
        return Interval(ratio, ratio * (1 - _SPREAD), ratio * (1 + _SPREAD), self._level)

    def _timings(
        self, answers: Sequence[FakeAnswer], references: Sequence[FakeAnswer] | None
    ) -> tuple[ShapeTiming, ...]:
        return tuple(
            ShapeTiming(
                shape=dict(shape),
                time_us=answer.time_us,
                low_us=answer.time_us * (1 - _SPREAD),
                high_us=answer.time_us * (1 + _SPREAD),
                batches=1,
                launches_per_batch=1,
                baseline_us=None if references is None else references[index].time_us,
                speedup=None
                if references is None
                else self._interval(references[index].time_us / answer.time_us),
                bound_us=answer.bound_us,
                bound_by=None if answer.bound_us is None else "flops",
            )
            for index, (shape, answer) in enumerate(zip(self._shapes, answers, strict=True))
        )
