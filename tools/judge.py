"""The judge: one problem, one target, one baseline, and a verdict with its evidence for any kernel."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

import numpy as np

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.sandbox.unit import KERNEL_FILE

from .errors import PlanError
from .evaluation import Comparison, Evaluation, Verdict
from .kernel import Kernel
from .problem import Problem
from .settings import JudgeSettings, Tier
from .targets.base import Target
from .text import clean

__all__ = ["Judge", "in_users_file", "require_accepted"]

# Where the evidence begins with a place: in the judge's words, or in the compiler's.
_PLACE = re.compile(
    rf"line (?P<line>\d+): |{re.escape(KERNEL_FILE)}:(?P<compiled>\d+)(?::\d+)?: (?:fatal )?error: "
)


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
        seed: int | Sequence[int] | None = None,
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
            refused = self._assessor.refuse(kernel, self.baseline, tier)
            if refused is not None:
                return refused
            if not self._baselines:
                self._evaluate_baseline("screen")
            for evaluation in self._baselines.values():
                require_accepted(evaluation, self.baseline.path)
            return self._assessor.evaluate(kernel, self.baseline, tier)

    def prepare(self, kernel: Kernel) -> None:
        """Begin to compile `kernel` in the background; its evaluation will find the builds. Never waits."""
        self._assessor.prepare(kernel)

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
    place = _PLACE.match(evidence)
    if place is not None:
        name += f", line {place['line'] or place['compiled']}"
        evidence = evidence[place.end() :]
    evidence = _in_file(evidence, path).rstrip(".;")
    raise UsageError(f"{name}: {what}: {evidence}; mend the kernel and try again")


def in_users_file(evaluation: Evaluation, path: Path) -> Evaluation:
    """The evaluation of a user's own kernel, its texts naming that file and not the judge's copy of it."""
    message = evaluation.message
    if re.match(r"line \d+: ", message):
        message = f"{path}, {message}"
    return replace(
        evaluation,
        message=_in_file(message, path),
        checks=tuple(replace(one, detail=_in_file(one.detail, path)) for one in evaluation.checks),
        compile_log=_in_file(evaluation.compile_log, path),
    )


def _in_file(text: str, path: Path | None) -> str:
    return re.sub(rf"(?<![\w./-]){re.escape(KERNEL_FILE)}(?=:\d)", lambda _: str(path or KERNEL_FILE), text)
