"""The candidates of runs as a pandas data frame: one row a candidate, one column a fact.

pandas is an extra: ``pip install 'kernel-scientist[frames]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernel_scientist.sandbox.errors import UnusableEnvironment

from .run import Candidate, Run

if TYPE_CHECKING:
    import pandas

__all__ = ["COLUMNS", "candidates_frame"]

COLUMNS = {
    "run": "id of the run",
    "candidate": "id of the candidate; 0000 is the starting kernel",
    "parent": "id of the Base it was made from",
    "generation": "0 for the starting kernel",
    "attempt": "1, or more after a repair",
    "status": "created, accepted or failed",
    "verdict": "the judge's word",
    "strategy": "the experiment's strategy",
    "experiment": "what was to be tried",
    "predicted_min": "predicted uplift over the Base in percent, lower end",
    "predicted_max": "and upper end",
    "uplift": "measured uplift over the Base in percent",
    "calibration": "below, within or above the prediction",
    "time_us": "geometric mean of the times over the shapes, microseconds",
    "speedup": "over the starting kernel",
    "speedup_low": "lower end of its interval",
    "speedup_high": "upper end of its interval",
    "tier": "how hard was measured: screen or confirm",
    "message": "the judge's evidence against a failed candidate",
    "event": "seq of the evaluation's event in events.jsonl",
    "path": "the kernel file",
}
"""The columns in their order and what each holds. What was not measured is missing (NaN or ``None``)."""


def candidates_frame(runs: Sequence[Run]) -> pandas.DataFrame:
    """A row for each candidate of `runs`, in the order of creation; the columns are `COLUMNS`.

    Raises `UnusableEnvironment` without pandas.
    """
    try:
        import pandas
    except ImportError:
        raise UnusableEnvironment(
            "Data frames need pandas; install it with: pip install 'kernel-scientist[frames]'"
        ) from None
    rows = [_row(run, one) for run in runs for one in run.candidates()]
    return pandas.DataFrame(rows, columns=list(COLUMNS))


def _row(run: Run, one: Candidate) -> dict[str, Any]:
    evaluation, experiment, finding = one.evaluation, one.experiment, one.finding
    speedup = None if evaluation is None else evaluation.speedup
    return {
        "run": run.id,
        "candidate": one.id,
        "parent": one.parent_id,
        "generation": one.generation,
        "attempt": one.attempt,
        "status": one.status,
        "verdict": one.verdict,
        "strategy": None if experiment is None else experiment.strategy,
        "experiment": None if experiment is None else experiment.description,
        "predicted_min": None if experiment is None else experiment.uplift_min,
        "predicted_max": None if experiment is None else experiment.uplift_max,
        "uplift": None if finding is None else finding.measured_uplift,
        "calibration": None if finding is None else finding.calibration,
        "time_us": None if evaluation is None else evaluation.time_us,
        "speedup": None if speedup is None else speedup.value,
        "speedup_low": None if speedup is None else speedup.low,
        "speedup_high": None if speedup is None else speedup.high,
        "tier": None if evaluation is None else evaluation.tier,
        "message": None if evaluation is None else evaluation.message,
        "event": one.evidence,
        "path": str(one.path),
    }
