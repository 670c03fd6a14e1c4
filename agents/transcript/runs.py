"""The list of runs, and what is shown first of one."""

from __future__ import annotations

from kernel_scientist.sandbox.errors import UsageError

from .. import events as ev
from ..run import BestKernel, Run, RunInfo
from .opened import OpenedRun
from .story import evidence_values, row_values, story_values
from .summary import CandidateRow, Summary
from .values import Json, evaluation_values, interval_values

__all__ = ["brief_values", "candidate_values", "cost_values", "overview_values", "run_row"]

_POINTS = 240


def run_row(run: Run) -> Json:
    """A run in the list of runs; a damaged one says how."""
    try:
        info = run.info
    except UsageError as error:
        return {"id": run.id, "status": "damaged", "damage": str(error)}
    return {
        "id": run.id,
        "status": info.status,
        "stop_reason": info.stop_reason,
        "problem": info.problem,
        "target": info.target,
        "device": info.device,
        "models": sorted(set(info.models.values())),
        "started": info.started.isoformat(),
        "totals": info.totals.model_dump(mode="json"),
        "best": None if info.best is None else _claim(info.best),
        "damage": "",
    }


def _claim(best: BestKernel) -> Json:
    return {"candidate_id": best.candidate_id, "speedup": interval_values(best.speedup)}


def overview_values(opened: OpenedRun) -> Json:
    """What the first screen shows: why it stopped, the best, how it came about, what the figure rests on."""
    record, summary, info = opened.record, opened.summary, opened.info
    best_id = opened.best_id
    best = summary.candidates.get(best_id) if best_id else None
    started = summary.started
    return {
        "id": opened.run.id,
        "run": _info_values(info),
        "told": _told(info, summary),
        "path": str(opened.run.path),
        "live": info is not None and info.status == "running",
        "last_seq": record.last_seq,
        "events": len(record.entries),
        "faults": opened.faults(),
        "notes": [] if started is None else list(started.notes),
        "generations": max((entry.generation for entry in record.entries[-1:]), default=0),
        "best": None if best is None else _leader(opened, best),
        "story": story_values(record, summary, best_id),
        "evidence": evidence_values(record, summary, info, best_id),
        "counts": _counts(opened),
        "leads": [
            {
                "seq": lead.seq, "at_s": lead.at_s, "candidate_id": lead.candidate_id,
                "speedup": interval_values(lead.speedup), "tier": lead.tier,
            }
            for lead in summary.leads
        ],
        "finished_seq": None if summary.finished is None else summary.finished.seq,
        "errors": len(summary.errors),
        "seconds": summary.last_s,
    }  # fmt: skip


def brief_values(run: Run) -> Json:
    """Of `overview_values` what ``run.json`` alone says; the rest is there, and empty."""
    try:
        info = run.info
    except UsageError:
        info = None
    best = None if info is None else info.best
    claim = None if best is None else {**_claim(best), "tier": best.tier, "path": best.path}
    live = info is not None and info.status == "running"
    return {
        "id": run.id,
        "run": _info_values(info),
        "told": _told(info, Summary()),
        "path": str(run.path),
        "live": live,
        "faults": [run.damage] if run.damage else [],
        "best": claim,
        "counts": _counted(info),
        "seconds": 0 if info is None else info.totals.seconds,
    }


def _info_values(info: RunInfo | None) -> Json | None:
    return None if info is None else info.model_dump(mode="json", exclude={"config", "prompts"})


def _told(info: RunInfo | None, summary: Summary) -> Json:
    """What the run is about; where ``run.json`` is damaged, what the record says of it."""
    started, finished = summary.started, summary.finished
    known = info or started
    ended = info or finished
    return {
        "problem": "" if known is None else known.problem,
        "target": "" if known is None else known.target,
        "device": "" if known is None else known.device,
        "models": [] if known is None else sorted(set(known.models.values())),
        "status": "" if ended is None else ended.status,
        "stop_reason": "" if ended is None else ended.stop_reason,
    }


def _counted(info: RunInfo | None) -> Json | None:
    if info is None:
        return None
    totals = info.totals
    return {
        "candidates": totals.candidates,
        "verdicts": {"accepted": totals.accepted},
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        # Whether they were counted here, only the record says.
        "estimated": True,
        "cost_usd": totals.cost_usd,
    }


def _leader(opened: OpenedRun, best: CandidateRow) -> Json:
    """The best with its claim where there is one, else as it was measured while searching."""
    info = opened.info
    claimed = info.best if info is not None and info.best is not None else None
    if claimed is not None and claimed.candidate_id == best.id:
        found = {"speedup": interval_values(claimed.speedup), "tier": claimed.tier, "path": claimed.path}
    else:
        found = {"speedup": interval_values(best.speedup), "tier": best.tier or "", "path": best.path}
    return {"candidate_id": best.id, **found}


def _counts(opened: OpenedRun) -> Json:
    rows = [row for row in opened.summary.candidates.values() if row.parent_id is not None]
    verdicts: dict[str, int] = {}
    for row in rows:
        verdicts[row.verdict] = verdicts.get(row.verdict, 0) + 1
    calls = opened.summary.calls
    costs = [call.cost_usd for call in calls if not call.failed]
    return {
        "candidates": len(rows),
        "verdicts": verdicts,
        "model_calls": len(calls),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "estimated": opened.summary.estimated,
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
        "judging_s": opened.summary.judging_s,
        "models_s": sum(call.seconds for call in calls),
        "passages": len(opened.summary.passages),
    }


def candidate_values(opened: OpenedRun, row: CandidateRow) -> Json:
    """All that is known of one candidate, its files included."""
    from .sources import file_beside, source_text
    from .story import passage_values, report_values

    record = opened.record
    source = source_text(opened.run, row.path)
    judged = record.event(row.judged_seq) if row.judged_seq else None
    found = record.event(row.finding_seq) if row.finding_seq else None
    made = record.event(row.created_seq)
    compared = [
        event
        for (a, b), seq in opened.summary.comparisons.items()
        if row.id in (a, b) and isinstance(event := record.event(seq), ev.ComparisonFinished)
    ]
    cited = row.experiment.citations if row.experiment else ()
    evaluation = judged.evaluation if isinstance(judged, ev.EvaluationFinished) else None
    log = evaluation.compile_log if evaluation is not None else ""
    return {
        **row_values(row),
        "path": row.path,
        "source": source.text,
        "source_fault": source.fault,
        **report_values(made),
        "rubric": list(row.experiment.rubric) if row.experiment else [],
        "passages": passage_values(record, opened.summary, cited),
        "evaluation": None if evaluation is None else evaluation_values(evaluation),
        "compile_log": log or file_beside(opened.run, row.path, "compile.log"),
        "finding": found.content.model_dump(mode="json") if isinstance(found, ev.MessageSent) else None,
        "comparisons": [
            {
                "seq": event.seq, "a_id": event.a_id, "b_id": event.b_id, "improved": event.improved,
                "claim": event.comparison.claim, "speedup": interval_values(event.comparison.speedup),
                "timings": [timing.to_dict() for timing in event.comparison.timings],
            }
            for event in compared
        ],
        "children": [one.id for one in opened.summary.candidates.values() if one.parent_id == row.id],
    }  # fmt: skip


def cost_values(opened: OpenedRun) -> Json:
    """Tokens and cost per agent, in total and as they grew; long runs are thinned to a few hundred points."""
    calls = opened.summary.calls
    agents: dict[str, Json] = {}
    points: list[Json] = []
    every = max(1, len(calls) // _POINTS)
    for number, call in enumerate(calls, start=1):
        one = agents.setdefault(
            call.agent,
            {"calls": 0, "failed": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0,
             "seconds": 0.0, "estimated": False},
        )  # fmt: skip
        one["calls"] += 1
        one["failed"] += call.failed
        one["prompt_tokens"] += call.prompt_tokens
        one["completion_tokens"] += call.completion_tokens
        one["seconds"] += call.seconds
        one["estimated"] |= call.estimated and not call.failed
        if one["cost_usd"] is not None and not call.failed:
            one["cost_usd"] = None if call.cost_usd is None else one["cost_usd"] + call.cost_usd
        if number % every == 0 or number == len(calls):
            tokens = {name: a["prompt_tokens"] + a["completion_tokens"] for name, a in agents.items()}
            costs = {name: a["cost_usd"] for name, a in agents.items()}
            points.append({"at_s": call.at_s, "seq": call.seq, "tokens": tokens, "cost_usd": costs})
    return {"agents": agents, "points": points, "judging_s": opened.summary.judging_s}
