"""Events as spans, named after OpenTelemetry's semantic conventions for generative AI.

invoke_workflow PROBLEM         the run, or one sitting of it
└── generation N
    └── invoke_agent AGENT      one turn
        ├── chat MODEL          one attempt at a model call
        ├── execute_tool TOOL
        └── evaluate CANDIDATE  the judge at work; `compare` before a claim

What takes no time is an event of the span that it falls in. Trace and span identifiers follow from the
run's id and the events' numbers, so that a run sent twice is the same trace. Free text (what was said, asked,
answered and looked up, errors, evidence) is in spans only where `content` is asked for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, final

from .. import events as ev
from .attributes import OURS, Attributes, Scalar, moment_attributes, optional, speedup_attributes
from .content import call_content, tool_content

__all__ = ["Span", "SpanEvent", "SpanMaker"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: Attributes


@dataclass(slots=True)
class Span:
    """A span; `end_ns` is 0 while it is open. `error` is why it failed, in a word or a sentence."""

    name: str
    id: int
    parent_id: int | None
    start_ns: int
    attributes: Attributes
    end_ns: int = 0
    kind: Literal["internal", "client"] = "internal"
    events: list[SpanEvent] = field(default_factory=list[SpanEvent])
    error: str | None = None


@final
class SpanMaker:
    """Give `take` every event of a run in their order; it returns the spans that ended with it.

    `close` ends those that are open still, as of the last event, and marks them as unfinished.
    """

    def __init__(self, *, content: bool = False) -> None:
        self.run_id = ""
        self._content = content
        self._run: Span | None = None
        self._generations: dict[int, Span] = {}
        self._turns: dict[int, Span] = {}
        self._last_ns = 0

    @property
    def trace_id(self) -> int:
        """128 bits that follow from the run's id."""
        return _identifier(self.run_id, 16)

    def take(self, event: ev.Event) -> list[Span]:
        """The spans that `event` ends, each after those within it."""
        self._last_ns = max(self._last_ns, _ns(event.time))
        match event:
            case ev.RunStarted():
                return self._begin(
                    event, event.problem, {"run.device": event.device, "run.target": event.target}
                )
            case ev.RunResumed():
                return self._begin(event, "", {"run.sitting": event.sitting})
            case ev.RunFinished():
                return self._finish(event)
            case ev.GenerationStarted():
                return self._generation(event)
            case ev.SpeakerSelected():
                return self._turn(event)
            case ev.MessageSent():
                return self._message(event)
            case ev.ModelCall():
                return [self._call(event)]
            case ev.ToolCall():
                return [self._tool(event)]
            case ev.EvaluationFinished():
                return [self._evaluation(event)]
            case ev.ComparisonFinished():
                return [self._comparison(event)]
            case _:
                self._moment(event)
                return []

    def close(self) -> list[Span]:
        """End what is open; the run did not say that it is over."""
        return self._end_all({f"{OURS}.unfinished": True})

    def _begin(
        self, event: ev.RunStarted | ev.RunResumed, problem: str, facts: dict[str, Scalar]
    ) -> list[Span]:
        ended = self.close()
        self.run_id = event.run_id
        names: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.conversation.id": self.run_id,
            f"{OURS}.run.id": self.run_id,
        }
        if problem:
            names["gen_ai.workflow.name"] = problem
        names |= {f"{OURS}.{name}": value for name, value in facts.items()}
        self._run = self._open(f"invoke_workflow {problem}".rstrip(), event, None, names)
        return ended

    def _finish(self, event: ev.RunFinished) -> list[Span]:
        if self._run is not None:
            totals = event.totals
            self._run.attributes |= {
                f"{OURS}.run.status": event.status,
                f"{OURS}.run.exit_code": event.exit_code,
                f"{OURS}.run.candidates": totals.candidates,
                "gen_ai.usage.input_tokens": totals.prompt_tokens,
                "gen_ai.usage.output_tokens": totals.completion_tokens,
                **optional("best.candidate_id", event.best_id),
                **optional("cost_usd", totals.cost_usd),
                **speedup_attributes(event.speedup),
            }
            if event.status == "failed":
                self._run.error = event.stop_reason if self._content else event.status
        return self._end_all({})

    def _generation(self, event: ev.GenerationStarted) -> list[Span]:
        ended = self._end_lane(event.lane, {})
        facts: Attributes = {f"{OURS}.best.candidate_id": event.best_id}
        self._generations[event.lane] = self._open(
            f"generation {event.generation}", event, self._run, self._named(event) | facts
        )
        return ended

    def _turn(self, event: ev.SpeakerSelected) -> list[Span]:
        ended = self._end(self._turns.pop(event.lane, None), {})
        facts: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": event.agent,
            **optional("slot", event.slot),
            **optional("attempt", event.attempt),
        }
        parent = self._generations.get(event.lane, self._run)
        name = f"invoke_agent {event.agent}"
        self._turns[event.lane] = self._open(name, event, parent, self._named(event) | facts)
        return ended

    def _message(self, event: ev.MessageSent) -> list[Span]:
        facts: Attributes = {f"{OURS}.message.type": event.content.type}
        if self._content:
            facts[f"{OURS}.message.text"] = event.text
        turn = self._turns.get(event.lane)
        if turn is None or turn.attributes.get("gen_ai.agent.name") != event.agent:
            self._moment(event, facts)
            return []
        del self._turns[event.lane]
        return self._end(turn, facts)

    def _call(self, event: ev.ModelCall) -> Span:
        usage = event.usage
        model = event.model.removeprefix("openai:")
        span = self._whole(f"chat {model}", event, event.seconds)
        # "openai" is what the conventions name any endpoint that speaks its protocol.
        provider = "openai" if model != event.model else OURS
        span.kind = "client" if model != event.model else "internal"
        span.attributes |= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.agent.name": event.agent,
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            f"{OURS}.usage.estimated": usage.estimated,
            f"{OURS}.purpose": event.purpose,
            f"{OURS}.attempt": event.attempt,
            **optional("cost_usd", event.cost_usd),
        }
        reason = (event.response or {}).get("finish_reason")
        if isinstance(reason, str):
            span.attributes["gen_ai.response.finish_reasons"] = [reason]
        if event.error is not None:
            self._fail(span, "model_call_failed", event.error)
        if self._content:
            span.attributes |= call_content(event)
        return span

    def _tool(self, event: ev.ToolCall) -> Span:
        span = self._whole(f"execute_tool {event.tool}", event, event.seconds)
        span.attributes |= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": event.agent,
            f"{OURS}.called_by": event.called_by,
        }
        if event.is_error:
            self._fail(span, "tool_failed", event.result)
        if self._content:
            span.attributes |= tool_content(event)
        return span

    def _evaluation(self, event: ev.EvaluationFinished) -> Span:
        one = event.evaluation
        span = self._whole(f"evaluate {event.candidate_id}", event, event.seconds)
        span.attributes |= {
            f"{OURS}.candidate.id": event.candidate_id,
            f"{OURS}.verdict": one.verdict.value,
            f"{OURS}.tier": one.tier,
            f"{OURS}.checks": len(one.checks),
            f"{OURS}.checks_passed": sum(check.passed for check in one.checks),
            **optional("time_us", one.time_us),
            **optional("reused_from", event.reused_from),
            **speedup_attributes(one.speedup),
        }
        # A kernel that fails is a result of the search, not a failure of the system: no error status.
        if self._content and one.message:
            span.attributes[f"{OURS}.evidence"] = one.message
        return span

    def _comparison(self, event: ev.ComparisonFinished) -> Span:
        span = self._whole(f"compare {event.a_id} {event.b_id}", event, event.seconds)
        span.attributes |= {
            f"{OURS}.a.candidate_id": event.a_id,
            f"{OURS}.b.candidate_id": event.b_id,
            f"{OURS}.claim": event.comparison.claim,
            f"{OURS}.improved": event.improved,
            **speedup_attributes(event.comparison.speedup),
        }
        return span

    def _moment(self, event: ev.Event, facts: Attributes | None = None) -> None:
        """Put a thing that takes no time where it happened; before the run has begun there is no place."""
        parent = self._parent(event)
        if parent is not None:
            known = moment_attributes(event, self._content) if facts is None else facts
            parent.events.append(
                SpanEvent(f"{OURS}.{event.kind}", _ns(event.time), {f"{OURS}.seq": event.seq, **known})
            )

    def _fail(self, span: Span, kind: str, words: str) -> None:
        span.error = words if self._content else kind
        span.attributes["error.type"] = kind

    def _named(self, event: ev.Event) -> Attributes:
        """What every span says: which run, generation, lane and event it is of."""
        return {
            "gen_ai.conversation.id": self.run_id,
            f"{OURS}.generation": event.generation,
            f"{OURS}.lane": event.lane,
            f"{OURS}.seq": event.seq,
        }

    def _parent(self, event: ev.Event) -> Span | None:
        return self._turns.get(event.lane) or self._generations.get(event.lane) or self._run

    def _open(self, name: str, event: ev.Event, parent: Span | None, attributes: Attributes) -> Span:
        identifier = _identifier(f"{self.run_id}/{event.seq}", 8)
        return Span(name, identifier, None if parent is None else parent.id, _ns(event.time), attributes)

    def _whole(self, name: str, event: ev.Event, seconds: float) -> Span:
        """A span that ended when its event was written, `seconds` after it had begun."""
        span = self._open(name, event, self._parent(event), self._named(event))
        span.end_ns = span.start_ns
        span.start_ns -= max(0, round(seconds * 1e9))
        return span

    def _end(self, span: Span | None, facts: Attributes) -> list[Span]:
        if span is None:
            return []
        span.end_ns = max(self._last_ns, span.start_ns)
        span.attributes |= facts
        return [span]

    def _end_lane(self, lane: int, facts: Attributes) -> list[Span]:
        turn = self._end(self._turns.pop(lane, None), facts)
        return turn + self._end(self._generations.pop(lane, None), facts)

    def _end_all(self, facts: Attributes) -> list[Span]:
        lanes = sorted(self._turns.keys() | self._generations.keys())
        ended = [span for lane in lanes for span in self._end_lane(lane, facts)]
        run, self._run = self._run, None
        return ended + self._end(run, facts)


def _identifier(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:size]) or 1


def _ns(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000
