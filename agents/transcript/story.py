"""How the best kernel came about: the steps from the start, what they cite, why to believe the figure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from kernel_scientist.tools.evaluation import Comparison, Evaluation

from .. import events as ev
from ..messages import Finding
from ..policies.strategy import strategy_named
from ..run import BASELINE_ID, RunInfo
from .record import Record
from .summary import CandidateRow, Summary
from .values import Json, evaluation_values, interval_values, timing_values

__all__ = ["evidence_values", "passage_values", "report_values", "row_values", "story_values"]


def row_values(row: CandidateRow) -> Json:
    """A candidate in a line, as JSON."""
    experiment = row.experiment
    return {
        "id": row.id,
        "parent_id": row.parent_id,
        "reference_id": row.reference_id,
        "generation": row.generation,
        "slot": row.slot,
        "attempt": row.attempt,
        "lane": row.lane,
        "verdict": row.verdict,
        "accepted": row.accepted,
        "tier": row.tier,
        "speedup": interval_values(row.speedup),
        "time_us": row.time_us,
        "checks": row.checks,
        "checks_passed": row.checks_passed,
        "created_s": row.created_s,
        "created_seq": row.created_seq,
        "judged_seq": row.judged_seq,
        "plan_seq": row.plan_seq,
        "finding_seq": row.finding_seq,
        "idea": None if experiment is None else experiment.description,
        "strategy": None if experiment is None else experiment.strategy,
        "strategy_group": None if experiment is None else strategy_named(experiment.strategy),
        "citations": [] if experiment is None else list(experiment.citations),
        "predicted_min": None if experiment is None else experiment.uplift_min,
        "predicted_max": None if experiment is None else experiment.uplift_max,
        "innovation": None if experiment is None else experiment.innovation,
        "criterion": row.criterion,
        "measured_uplift": row.measured_uplift,
        "calibration": row.calibration,
    }


def passage_values(record: Record, summary: Summary, ids: Iterable[str]) -> dict[str, Json]:
    """The cited passages by id, as they were first shown to an agent; unknown ids are left out."""
    wanted = {name: summary.passages[name] for name in ids if name in summary.passages}
    found: dict[str, Json] = {}
    for seq in sorted(set(wanted.values())):
        event = record.event(seq)
        if isinstance(event, ev.PassagesRetrieved):
            for passage in event.passages:
                if wanted.get(passage.id) == seq:
                    found[passage.id] = passage.model_dump(mode="json") | {"seq": seq}
    return found


def story_values(record: Record, summary: Summary, best_id: str | None) -> Json | None:
    """The steps that led to `best_id`, the one that gained most first of all; ``None`` without a step."""
    chain = summary.ancestry(best_id) if best_id else []
    if len(chain) < 2:
        return None
    steps = [_step(parent, row) for parent, row in pairwise(chain)]
    key = max(range(len(steps)), key=lambda place: steps[place]["gain"] or 0.0)
    decisive = chain[key + 1]
    steps[key] = row_values(decisive) | steps[key]
    cited = decisive.experiment.citations if decisive.experiment else ()
    finding = record.event(decisive.finding_seq) if decisive.finding_seq else None
    said = finding.content if isinstance(finding, ev.MessageSent) else None
    made = record.event(decisive.created_seq)
    return {
        "steps": steps,
        "decisive": key,
        "rubric": list(decisive.experiment.rubric) if decisive.experiment else [],
        "passages": passage_values(record, summary, cited),
        **report_values(made),
        "finding": said.model_dump(mode="json") if isinstance(said, Finding) else None,
        "tried_otherwise": len(summary.candidates) - len(chain),
    }


def report_values(made: ev.Event | None) -> Json:
    """What the Coder says that it implemented: its words, and the points of the rubric."""
    if not isinstance(made, ev.CandidateCreated):
        return {"report": "", "points": []}
    return {"report": made.report, "points": [one.model_dump() for one in made.rubric]}


def _step(parent: CandidateRow, row: CandidateRow) -> Json:
    """A step in a line, for a run may have thousands.

    `gain` is the step's own factor, from both kernels' speed-ups over the starting kernel.
    """
    before = 1.0 if parent.id == BASELINE_ID else (parent.speedup.value if parent.speedup else None)
    gain = row.speedup.value / before if row.speedup and before else None
    return {"id": row.id, "parent_id": parent.id, "speedup": interval_values(row.speedup), "gain": gain}


def evidence_values(record: Record, summary: Summary, info: RunInfo | None, best_id: str | None) -> Json:
    """On what the best kernel's figure rests: its checks, the fresh pairs against the start, the times."""
    values: Json = {"confirmed": None, "judged": None, "start": None, "timings": [], "tier": None}
    start = summary.candidates.get(BASELINE_ID)
    if start is not None and start.judged_seq is not None:
        judged = _evaluation(record, start.judged_seq)
        values["start"] = None if judged is None else _brief(judged, start.judged_seq)
    if best_id is None:
        return values
    row = summary.candidates.get(best_id)
    judged = _evaluation(record, row.judged_seq) if row and row.judged_seq else None
    if row and row.judged_seq and judged is not None:
        values |= {"judged": _brief(judged, row.judged_seq), "tier": judged.tier}
        values["timings"] = [timing_values(timing) for timing in judged.timings]
    seq = summary.comparisons.get((BASELINE_ID, best_id))
    event = record.event(seq) if seq else None
    if isinstance(event, ev.ComparisonFinished):
        values["confirmed"] = _confirmed(event.comparison, event)
        values["timings"] = [timing_values(timing) for timing in event.comparison.timings]
    if info is not None and info.best is not None and info.best.candidate_id == best_id:
        values["tier"] = info.best.tier
    return values


def _evaluation(record: Record, seq: int) -> Evaluation | None:
    event = record.event(seq)
    return event.evaluation if isinstance(event, ev.EvaluationFinished) else None


def _brief(evaluation: Evaluation, seq: int) -> Json:
    values = evaluation_values(evaluation)
    kept = (
        "checks",
        "resources",
        "resources_note",
        "method",
        "notes",
        "sandbox",
        "device",
        "target",
        "time_us",
    )
    return {name: values[name] for name in kept} | {"seq": seq}


def _confirmed(comparison: Comparison, event: ev.ComparisonFinished) -> Json:
    pairs = [timing.batches for timing in comparison.timings]
    return {
        "seq": event.seq,
        "improved": event.improved,
        "claim": comparison.claim,
        "speedup": interval_values(comparison.speedup),
        "pairs": [min(pairs), max(pairs)] if pairs else None,
        "checks": [{"name": c.name, "passed": c.passed, "detail": c.detail} for c in comparison.b.checks],
        "method": comparison.b.method,
        "notes": list(dict.fromkeys((*comparison.a.notes, *comparison.b.notes))),
        "seconds": event.seconds,
    }
