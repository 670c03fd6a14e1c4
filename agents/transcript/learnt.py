"""What a run has learnt: what came of each strategy, which passage of literature moved which experiment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from .. import events as ev
from ..messages import Experiment, Finding
from ..policies.record import calibration_of, strategy_records
from .opened import OpenedRun
from .story import passage_values
from .summary import CandidateRow
from .values import Json, interval_values

__all__ = ["learnt_values", "passage_place"]


@dataclass(frozen=True, slots=True)
class _Judged:
    id: str
    experiment: Experiment | None
    finding: Finding | None


def learnt_values(opened: OpenedRun) -> Json:
    """`strategies` and `calibration` as the Researcher sees them; `passages` that experiments cite.

    A passage names the experiments that cite it, the one with the best measured uplift first; passages stand
    in the order of that uplift.
    """
    judged = list(_judged(opened))
    overall = calibration_of(judged)
    return {
        "strategies": [asdict(one) for one in strategy_records(judged)],
        "calibration": None if overall is None else {**asdict(overall), "coverage": overall.coverage},
        "calibration_text": "" if overall is None else str(overall),
        "passages": _passages(opened),
    }


def passage_place(passage: Json) -> str:
    """Document, section and page of a passage on one line."""
    section = f"§ {passage['section']}" if passage["section"] else ""
    page = f"page {passage['page']}" if passage["page"] is not None else ""
    return ", ".join(part for part in (passage["title"], section, page) if part)


def _judged(opened: OpenedRun) -> Iterator[_Judged]:
    rows = opened.summary.candidates
    told = [row.finding_seq for row in rows.values() if row.finding_seq is not None]
    entries = [entry for seq in sorted(told) if (entry := opened.record.entry(seq)) is not None]
    for event in opened.record.events(entries):
        if isinstance(event, ev.MessageSent) and isinstance(event.content, Finding):
            finding = event.content
            yield _Judged(finding.candidate_id, rows[finding.candidate_id].experiment, finding)


def _passages(opened: OpenedRun) -> list[Json]:
    cited: dict[str, list[CandidateRow]] = {}
    for row in opened.summary.candidates.values():
        for name in dict.fromkeys(row.experiment.citations if row.experiment else ()):
            cited.setdefault(name, []).append(row)
    known = passage_values(opened.record, opened.summary, cited)
    unknown: Json = {"title": "", "section": "", "page": None, "source": "", "text": "", "seq": None}
    found = [
        {**unknown, **known.get(name, {}), "id": name, "experiments": _experiments(rows)}
        for name, rows in cited.items()
    ]
    return sorted(found, key=lambda one: (_worth(one["experiments"][0]), one["id"]))


def _experiments(rows: list[CandidateRow]) -> list[Json]:
    values = [
        {
            "candidate_id": row.id,
            "idea": row.experiment.description if row.experiment else "",
            "verdict": row.verdict,
            "measured_uplift": row.measured_uplift,
            "speedup": interval_values(row.speedup),
            "finding_seq": row.finding_seq,
            "plan_seq": row.plan_seq,
        }
        for row in rows
    ]
    return sorted(values, key=lambda one: (_worth(one), one["candidate_id"]))


def _worth(experiment: Json) -> float:
    """To sort by: the best uplift first, what was not measured last."""
    measured = experiment["measured_uplift"]
    return float("inf") if measured is None else -measured
