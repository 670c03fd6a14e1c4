"""A target that runs nothing: verdict and time are a function of the kernel's constants.

For tests of what uses a judge. It is not registered and cannot be chosen by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    """What the target says of a kernel; `time_us` is on the first shape, the next take 2, 3 ... times it."""

    time_us: float = 1000.0
    verdict: Verdict = Verdict.ACCEPTED
    message: str = ""


Script = Callable[[Mapping[str, ConstantValue]], FakeAnswer]


@final
class FakeTarget:
    """Answers from `script`, deterministically; plans are bound, so that a wrong plan still is one."""

    name = "fake"
    device = "no device (scripted times)"
    sandbox = "none"

    def __init__(self, script: Script, *, target_class: str = "cpu") -> None:
        self.target_class = target_class
        self._script = script

    def assessor(
        self, problem: Problem, settings: JudgeSettings, seeds: np.random.SeedSequence
    ) -> _FakeAssessor:
        del seeds
        return _FakeAssessor(self, self._script, problem, settings)


@final
class _FakeAssessor:
    def __init__(self, target: FakeTarget, script: Script, problem: Problem, settings: JudgeSettings) -> None:
        self._target = target
        self._script = script
        self._shapes = problem.shapes[target.target_class].benchmarks
        self._problem = problem
        self._level = settings.level

    def prepare(self, kernel: Kernel) -> None:
        """There is nothing to compile."""

    def refuse(self, kernel: Kernel, baseline: Kernel, tier: Tier) -> Evaluation | None:
        """Every kernel is evaluated."""

    def evaluate(self, kernel: Kernel, baseline: Kernel | None, tier: Tier) -> Evaluation:
        answer = self._answer(kernel)
        accepted = answer.verdict is Verdict.ACCEPTED
        reference = answer if baseline is None else self._answer(baseline)
        ratio = reference.time_us / answer.time_us
        speedup = Interval(1.0, 1.0, 1.0, self._level) if baseline is None else self._interval(ratio)
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
            timings=self._timings(answer.time_us, None if baseline is None else reference.time_us)
            if accepted
            else (),
            speedup=speedup if accepted else None,
            resources_note="the fake target compiles nothing",
        )

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        first, second = self.evaluate(a, None, "confirm"), self.evaluate(b, a, "confirm")
        speedup = second.speedup if first.accepted else None
        if speedup is None:
            return Comparison(first, second, (), Interval(1.0, 0.0, float("inf"), self._level), "no claim")
        return Comparison(first, second, second.timings, speedup, f"scripted: {speedup.value:.3g}")

    def _answer(self, kernel: Kernel) -> FakeAnswer:
        try:
            for shape in self._shapes:
                bind(kernel, self._problem, shape)
        except PlanError as error:
            return FakeAnswer(verdict=Verdict.INVALID_PLAN, message=str(error))
        return self._script(kernel.plan.constants)

    def _interval(self, ratio: float) -> Interval:
        return Interval(ratio, ratio * (1 - _SPREAD), ratio * (1 + _SPREAD), self._level)

    def _timings(self, time_us: float, baseline_us: float | None) -> tuple[ShapeTiming, ...]:
        return tuple(
            ShapeTiming(
                shape=dict(shape),
                time_us=time_us * factor,
                low_us=time_us * factor * (1 - _SPREAD),
                high_us=time_us * factor * (1 + _SPREAD),
                batches=1,
                launches_per_batch=1,
                baseline_us=None if baseline_us is None else baseline_us * factor,
                speedup=None if baseline_us is None else self._interval(baseline_us / time_us),
            )
            for factor, shape in enumerate(self._shapes, start=1)
        )
