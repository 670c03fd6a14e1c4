"""One event of a run as one line of text; what only fills the record has no line."""

from __future__ import annotations

from kernel_scientist.agents import events as ev

from .judged import how_compared, verdict_line
from .text import count, interval, one_line, times

__all__ = ["event_line", "reference"]

_WIDTH = 170


def reference(event: ev.Event) -> str:
    """How an event is named in text: ``[#42]`` is the line of events.jsonl whose seq is 42."""
    return f"[#{event.seq}]"


def event_line(event: ev.Event) -> str | None:
    """What happened, in at most a line of bounded length; ``None`` for what is not worth one."""
    text = _said(event) or _did(event) or _came_out(event)
    return None if text is None else one_line(text, _WIDTH)


def _said(event: ev.Event) -> str | None:
    match event:
        case ev.MessageSent():
            return f"{event.agent.capitalize()}: {event.text}"
        case ev.PassagesRetrieved():
            found = ", ".join(passage.id for passage in event.passages) or "nothing"
            return f"{event.agent.capitalize()} looked up '{event.query}': {found}"
        case ev.ToolCall(is_error=True):
            return f"{event.agent.capitalize()} called {event.tool}, which failed: {event.result}"
        case ev.ContextCut():
            cut = ", ".join(event.cut)
            return f"{event.agent.capitalize()}'s prompt is cut to {event.window} tokens; left out: {cut}"
        case ev.ModelCall() if event.error:
            return f"{event.agent.capitalize()}'s model {event.model}, try {event.attempt}: {event.error}"
        case _:
            return None


def _did(event: ev.Event) -> str | None:
    match event:
        case ev.RunStarted():
            models = ", ".join(sorted(set(event.models.values())))
            return (
                f"run {event.run_id}: {event.problem} on {event.target} ({event.device}), sandbox "
                f"{event.sandbox}, model {models}, {count(event.generations, 'generation')}"
            )
        case ev.RunResumed():
            done = f"{count(event.totals.candidates, 'candidate')} so far, {_begun(event.interrupted)}"
            notes = "".join(f"; {note}" for note in event.notes)
            return f"run {event.run_id} goes on (sitting {event.sitting}): {done}{notes}"
        case ev.StopRequested():
            return (
                f"stopping ({event.reason}): the evaluation in flight has {event.grace_s:g} s to end; "
                "Ctrl-C again stops at once"
            )
        case ev.GenerationStarted():
            best = f"{event.best_id} at {times(event.best_speedup)}" if event.best_speedup else event.best_id
            lane = f", lane {event.lane}" if event.lane > 1 else ""
            return f"generation {event.generation} of {event.generations}{lane}, best so far {best}"
        case ev.CandidateCreated():
            origin = f" from {event.parent_id}" if event.parent_id else ", the starting kernel"
            return f"candidate {event.candidate_id}{origin}"
        case ev.EvaluationStarted():
            return f"judging {event.candidate_id} ({event.tier})"
        case _:
            return None


def _begun(generations: tuple[int, ...]) -> str:
    if not generations:
        return "no generation was cut short"
    return f"in generation{'s' * (len(generations) > 1)} {', '.join(str(one) for one in generations)}"


def _came_out(event: ev.Event) -> str | None:
    match event:
        case ev.EvaluationFinished():
            reused = f" (as {event.reused_from}, the same program)" if event.reused_from else ""
            anew = "".join(f"; begun anew: {one_line(why)}" for why in event.evaluation.begun_anew)
            return f"{event.candidate_id} {verdict_line(event.evaluation)}{reused}{anew}"
        case ev.ComparisonFinished():
            how = how_compared(event.comparison.b.target)
            claim = "an improvement" if event.improved else "no improvement shown"
            return f"{event.b_id} against {event.a_id} {how}: {interval(event.comparison.speedup)}, {claim}"
        case ev.BestChanged():
            return f"best is now {event.candidate_id}: {interval(event.speedup)} ({event.tier})"
        case ev.LimitReached():
            return f"limit reached: {event.sentence}"
        case ev.ErrorRecorded():
            outcome = "went on after an error" if event.recovered else "error"
            return f"{outcome} in {event.where}: {event.message}"
        case ev.RunFinished(status="failed"):
            # Why is the error before it.
            return "run finished (failed)"
        case ev.RunFinished():
            return f"run finished ({event.status}): {event.stop_reason}"
        case _:
            return None
