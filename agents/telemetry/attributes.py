"""The figures and names of an event as attributes: the GenAI conventions' names, and under ours the rest."""

from __future__ import annotations

from typing import assert_never

from kernel_scientist.tools.evaluation import Interval

from .. import events as ev

__all__ = ["OURS", "Attributes", "Scalar", "moment_attributes", "optional", "speedup_attributes"]

Scalar = str | bool | int | float
Attributes = dict[str, Scalar | list[str]]

OURS = "kernel_scientist"
"""How attributes begin for which the conventions have no name."""


def moment_attributes(event: ev.Event, content: bool) -> Attributes:
    """The figures and names of an event that becomes a moment; its free text only with `content`."""
    match event:
        case ev.CandidateCreated():
            facts: Attributes = {
                f"{OURS}.candidate.id": event.candidate_id,
                f"{OURS}.attempt": event.attempt,
                **optional("parent.candidate_id", event.parent_id),
                **optional("reference.candidate_id", event.reference_id),
            }
            return facts | ({f"{OURS}.diff": event.diff} if content else {})
        case ev.EvaluationStarted():
            return {f"{OURS}.candidate.id": event.candidate_id, f"{OURS}.tier": event.tier}
        case ev.BestChanged():
            named: Attributes = {f"{OURS}.candidate.id": event.candidate_id, f"{OURS}.tier": event.tier}
            return named | speedup_attributes(event.speedup)
        case ev.PassagesRetrieved():
            found: Attributes = {f"{OURS}.passages": [one.id for one in event.passages]}
            return found | ({"gen_ai.retrieval.query.text": event.query} if content else {})
        case ev.ContextCut():
            return {f"{OURS}.window": event.window, f"{OURS}.cut": list(event.cut)}
        case ev.LimitReached():
            return {
                f"{OURS}.limit": event.limit,
                f"{OURS}.used": event.used,
                f"{OURS}.maximum": event.maximum,
            }
        case ev.ErrorRecorded():
            about: Attributes = {f"{OURS}.where": event.where, f"{OURS}.recovered": event.recovered}
            return about | ({f"{OURS}.message": event.message} if content else {})
        case ev.StopRequested():
            return {f"{OURS}.reason": event.reason}
        case ev.RunStarted() | ev.RunResumed() | ev.RunFinished() | ev.GenerationStarted():
            return {}
        case ev.SpeakerSelected() | ev.MessageSent() | ev.ModelCall() | ev.ToolCall():
            return {}
        case ev.EvaluationFinished() | ev.ComparisonFinished():
            return {}
        case _:
            assert_never(event)


def optional(name: str, value: Scalar | None) -> Attributes:
    """One of our own attributes; none for what is not known."""
    return {} if value is None else {f"{OURS}.{name}": value}


def speedup_attributes(speedup: Interval | None) -> Attributes:
    """A speed-up with its interval; none for what was not measured."""
    if speedup is None:
        return {}
    return {
        f"{OURS}.speedup": speedup.value,
        f"{OURS}.speedup.low": speedup.low,
        f"{OURS}.speedup.high": speedup.high,
        f"{OURS}.speedup.level": speedup.level,
    }
