"""An event as the conversation shows it: everything that was said, and of bulky parts their size only.

A part left out is listed in ``more``; the whole event is there to be fetched by its `seq`.
"""

from __future__ import annotations

from typing import Any, cast

from .. import events as ev
from ..messages import Hypotheses
from .record import Entry, Record
from .story import passage_values
from .summary import Summary
from .values import Json, interval_values, json_list

__all__ = ["item_values"]

_SHOWN = 4_000


def item_values(record: Record, summary: Summary, entry: Entry, event: ev.Event) -> Json:
    """The event with its subjects; texts beyond a few thousand characters are cut and named in ``more``."""
    more: Json = {}
    values = _body(record, summary, event, more)
    values |= {
        "seq": event.seq,
        "time": event.time.isoformat(),
        "kind": event.kind,
        "generation": event.generation,
        "lane": entry.lane,
        "agent": entry.agent,
        "candidates": list(entry.candidates),
    }
    return {**values, "more": more}


def _body(record: Record, summary: Summary, event: ev.Event, more: Json) -> Json:
    match event:
        case ev.MessageSent():
            values = event.model_dump(mode="json", include={"content", "text"})
            if isinstance(event.content, Hypotheses):
                cited = [name for one in event.content.experiments for name in one.citations]
                values["passages"] = passage_values(record, summary, cited)
                values["counts"] = event.content.counts
                values["refused"] = [
                    {"experiment": one.experiment, "text": one.text} for one in event.content.refused
                ]
            return values
        case ev.ModelCall():
            return _call(event, more)
        case ev.ToolCall():
            values = event.model_dump(mode="json")
            return values | {"result": _cut(event.result, "result", more)}
        case ev.CandidateCreated():
            more["diff"] = len(event.diff)
            return event.model_dump(mode="json", exclude={"diff"})
        case ev.EvaluationFinished():
            one = event.evaluation
            more["evaluation"] = len(one.compile_log)
            return {
                "candidate_id": event.candidate_id,
                "verdict": one.verdict.value,
                "tier": one.tier,
                "message": _cut(one.message, "message", more),
                "speedup": interval_values(one.speedup),
                "time_us": one.time_us,
                "checks": len(one.checks),
                "checks_passed": sum(check.passed for check in one.checks),
                "seconds": event.seconds,
            }
        case ev.ComparisonFinished():
            return {
                "a_id": event.a_id,
                "b_id": event.b_id,
                "improved": event.improved,
                "claim": event.comparison.claim,
                "speedup": interval_values(event.comparison.speedup),
                "pairs": [timing.batches for timing in event.comparison.timings],
                "seconds": event.seconds,
            }
        case _:
            return event.model_dump(mode="json")


def _call(event: ev.ModelCall, more: Json) -> Json:
    values = event.model_dump(mode="json", exclude={"request", "response"})
    response: dict[str, Any] = event.response or {}
    content = response.get("content")
    named = [cast("Json", call) for call in json_list(content) if isinstance(call, dict)]
    asked = [{"tool": str(c.get("name", "")), "arguments": str(c.get("arguments", ""))} for c in named]
    more["request"] = sum(len(str(message.get("content", ""))) for message in event.request)
    return values | {
        "thought": _cut(str(response.get("thought") or ""), "thought", more),
        "answer": _cut(content, "answer", more) if isinstance(content, str) else "",
        "asked": asked,
        "new_messages": len(event.request),
    }


def _cut(text: str, name: str, more: Json) -> str:
    if len(text) > _SHOWN:
        more[name] = len(text)
    return text[:_SHOWN]
