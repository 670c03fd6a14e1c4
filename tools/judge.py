"""The judge: one problem, one target, one baseline, and a verdict with its evidence for any kernel."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import final

import numpy as np

from kernel_scientist.sandbox.errors import UsageError

from .errors import PlanError
from .evaluation import Comparison, Evaluation, Verdict
from .kernel import Kernel
from .problem import Problem
from .settings import JudgeSettings, Tier
from .targets.base import Target
from .text import clean

__all__ = ["Judge", "require_accepted"]


@final
class Judge:
    """Evaluates kernels against `baseline`. Calls from several threads wait for one another.

    The baseline is evaluated before the first candidate, and once; where it is not accepted the first
    candidate's evaluation raises UsageError. With a `seed` the same calls draw the same shapes and inputs.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        baseline: Kernel,
        *,
        settings: JudgeSettings | None = None,
        seed: int | None = None,
    ) -> None:
        self.problem = problem
        self.target = target
        self.baseline = baseline
        self.settings = settings or JudgeSettings()
        self._lock = threading.Lock()
        self._assessor = target.assessor(problem, self.settings, np.random.SeedSequence(seed))
        self._baselines: dict[Tier, Evaluation] = {}

    def evaluate(self, kernel: Kernel, *, tier: Tier = "screen") -> Evaluation:
        """The verdict on `kernel`; the baseline's own evaluation, of speed-up 1, when it is the baseline."""
        with self._lock:
            if kernel.key == self.baseline.key:
                return self._evaluate_baseline(tier)
            if not self._baselines:
                self._evaluate_baseline("screen")
            for evaluation in self._baselines.values():
                require_accepted(evaluation, self.baseline.path)
            return self._assessor.evaluate(kernel, self.baseline, tier)

    def compare(self, a: Kernel, b: Kernel) -> Comparison:
        """B against A in fresh pairs of the confirm tier, whatever was measured of them before.

        When one of them is not accepted, its evaluation says why and the interval is [0, infinity).
        """
        with self._lock:
            return self._assessor.compare(a, b)

    def refuse(self, text: str, error: PlanError) -> Evaluation:
        """The evaluation of a candidate whose text is no kernel: `error` is what `Kernel.parse` raised."""
        return Evaluation(
            verdict=Verdict.INVALID_PLAN,
            message=clean(str(error)),
            tier="screen",
            target=self.target.name,
            device=self.target.device,
            sandbox=self.target.sandbox,
            baseline_key=self.baseline.key,
            kernel_key=hashlib.sha256(text.replace("\r\n", "\n").encode(errors="replace")).hexdigest(),
        )

    def _evaluate_baseline(self, tier: Tier) -> Evaluation:
        known = self._baselines.get(tier)
        if known is None:
            known = self._baselines[tier] = self._assessor.evaluate(self.baseline, None, tier)
        return known


def require_accepted(evaluation: Evaluation, path: Path | None) -> None:
    """UsageError, one sentence, when the user's own kernel at `path` is not accepted."""
    if evaluation.accepted:
        return
    what = {
        Verdict.INVALID_PLAN: "its launch plan is wrong",
        Verdict.REJECTED: "it is refused",
        Verdict.COMPILE_ERROR: "it does not compile",
        Verdict.LAUNCH_ERROR: "it cannot be launched",
        Verdict.WRONG_RESULT: "its result is wrong",
        Verdict.TIMEOUT: "it does not come to an end",
        Verdict.CRASHED: "it crashes",
        Verdict.IMPLAUSIBLE: "its time is impossible",
        Verdict.ACCEPTED: "",
    }[evaluation.verdict]
    name = str(path) if path is not None else f"kernel {evaluation.kernel_key[:12]}"
    evidence = " ".join(
        clean(evaluation.message, 600).removeprefix(f"{path}, ").removeprefix(f"{path}: ").split()
    )
    raise UsageError(f"{name}: {what}: {evidence}; mend the kernel and try again")
