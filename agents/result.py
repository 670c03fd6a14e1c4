"""How a session ended: what `Session.run` gives back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_scientist.tools.evaluation import Comparison, Interval

from .run import Run, RunStatus

if TYPE_CHECKING:
    from kernel_scientist.knowledge import KnowledgeBase

__all__ = ["Best", "SessionResult", "recorded_result", "with_experience"]


@dataclass(frozen=True, slots=True)
class Best:
    """The winner. `speedup` is over the starting kernel, from fresh pairs when `comparison` is there."""

    candidate_id: str
    path: Path
    speedup: Interval
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class SessionResult:
    """How a session ended. Exit codes: 0 improved, 3 nothing better, 4 a limit, 130 interrupted.

    `learnt` says what came of keeping the findings; it is empty where nobody asked for that.
    """

    run: Run
    status: RunStatus
    stop_reason: str
    best: Best | None
    exit_code: int
    learnt: str = ""


def recorded_result(run: Run) -> SessionResult:
    """How a run that is over ended, from its files."""
    info = run.info
    best = None
    if info.best is not None:
        best = Best(info.best.candidate_id, run.path / info.best.path, info.best.speedup, run.confirmation)
    return SessionResult(run, info.status, info.stop_reason, best, info.exit_code or 0)


def with_experience(result: SessionResult, keeper: KnowledgeBase | None) -> SessionResult:
    """The result with what came of keeping the run's findings in `keeper`."""
    if keeper is None:
        return result
    from .experience import learn_or_say

    return replace(result, learnt=learn_or_say(result.run, keeper))
