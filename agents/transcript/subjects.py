"""What an event is about: the agent that acts in it and the candidates that it names."""

from __future__ import annotations

from .. import events as ev
from ..messages import CandidateProposal, EvaluationFailure, Finding, Selection

__all__ = ["agent_of", "candidates_of", "lane_of"]


def agent_of(event: ev.Event) -> str:
    """The agent that speaks, calls or is called upon; empty for what the session itself does."""
    agent = getattr(event, "agent", "")
    return agent if isinstance(agent, str) else ""


def lane_of(event: ev.Event) -> int:
    """The lane of a session with several conversations at a time; 0 where there is one."""
    lane = getattr(event, "lane", 0)
    return lane if isinstance(lane, int) else 0


def candidates_of(event: ev.Event) -> tuple[str, ...]:
    """The candidates that the event itself names."""
    match event:
        # By far the most frequent kind; each class that is asked for in vain takes pydantic long.
        case ev.ModelCall():
            return ()
        case ev.CandidateCreated() | ev.EvaluationStarted() | ev.EvaluationFinished() | ev.BestChanged():
            return (event.candidate_id,)
        case ev.ComparisonFinished():
            return (event.a_id, event.b_id)
        case ev.ToolCall(arguments={"candidate_id": str() as name}):
            return (name,)
        case ev.MessageSent(content=CandidateProposal() | EvaluationFailure() | Finding() as content):
            return (content.candidate_id,)
        case ev.MessageSent(content=Selection() as choice):
            return (choice.base_id,)
        case ev.RunFinished(best_id=str() as best):
            return (best,)
        case _:
            return ()
