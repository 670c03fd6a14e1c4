"""The end of a session: the fastest candidates are measured again before one is called better."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import final

from kernel_scientist.tools.evaluation import Comparison
from kernel_scientist.tools.judge import Judge

from . import events as ev
from .lab import Lab
from .population import Member
from .recorder import unified_diff
from .session import Best
from .stopping import in_thread

__all__ = ["Confirmation"]

CONFIRMATIONS = 3
"""So many of the fastest candidates are measured again before the session says that none is better."""


@final
class Confirmation:
    """Finds the best of a population and writes ``best/``."""

    def __init__(self, lab: Lab, judge: Judge) -> None:
        self._lab = lab
        self._judge = judge

    async def confirmed(self) -> Best | None:
        """Measure the fastest again, against the starting kernel, until one holds its claim."""
        leading = [one for one in self._lab.population.accepted() if (one.speedup or 0.0) > 1.0]
        for member in leading[:CONFIRMATIONS]:
            comparison = await self._compare(member)
            if comparison.speedup.low > 1.0:
                return self._write(member, comparison)
        self._lab.recorder.write_best({})
        return None

    def unconfirmed(self) -> Best | None:
        """What leads so far, without measuring it again."""
        best = self._lab.population.best
        return None if best is self._lab.population.baseline else self._write(best, None)

    async def _compare(self, member: Member) -> Comparison:
        lab, baseline = self._lab, self._lab.population.baseline
        lab.recorder.emit(ev.EvaluationStarted, candidate_id=member.id, tier="confirm")
        assert baseline.kernel is not None and member.kernel is not None
        began = time.perf_counter()
        work = in_thread(partial(self._judge.compare, baseline.kernel, member.kernel))
        comparison = await lab.stop.unless_stopped(work)
        lab.recorder.emit(
            ev.ComparisonFinished,
            a_id=baseline.id,
            b_id=member.id,
            comparison=comparison,
            improved=comparison.speedup.low > 1.0,
            seconds=time.perf_counter() - began,
        )
        return comparison

    def _write(self, member: Member, comparison: Comparison | None) -> Best:
        evaluation = member.evaluation
        assert evaluation is not None and evaluation.speedup is not None
        baseline, recorder = self._lab.population.baseline, self._lab.recorder
        files = {
            "kernel.hip": member.source,
            "evaluation.json": json.dumps(evaluation.to_dict(), indent=2) + "\n",
            "changes.diff": unified_diff(baseline.source, member.source, baseline.id, member.id),
        }
        if comparison is not None:
            files["comparison.json"] = json.dumps(comparison.to_dict(), indent=2) + "\n"
        recorder.write_best(files)
        speedup = evaluation.speedup if comparison is None else comparison.speedup
        return Best(member.id, recorder.folder / "best" / "kernel.hip", speedup, comparison)
