"""What a recorded run has done so far, read back so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kernel_scientist.sandbox.files import explained

from . import events as ev
from .chat import CODER, as_message, follow
from .events import Totals
from .holes import consistent, with_gaps_filled
from .messages import CandidateProposal, Hypotheses, Stopped
from .passages import passage_view
from .requests import PassageView
from .run import BASELINE_ID, Candidate, Run, RunInfo

__all__ = ["Answer", "Conversation", "Past", "read_past"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's recorded answer: what it was asked for, and AutoGen's result as JSON values."""

    purpose: str
    response: dict[str, Any]


@dataclass(slots=True)
class Conversation:
    """A generation's recorded messages, and what its last turn had come to when it broke off.

    `answers` are those that each agent's model gave since the last message, `answered` counts them all;
    `created` are the candidates that no message has named. It is `closed` where its lane went on to another.
    """

    started: bool = False
    closed: bool = False
    lane: int = 0
    said: list[ev.MessageSent] = field(default_factory=list[ev.MessageSent])
    answers: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    created: list[ev.CandidateCreated] = field(default_factory=list[ev.CandidateCreated])
    answered: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def over(self) -> bool:
        return self.closed or (bool(self.said) and self._speaker() is None)

    @property
    def nothing_to_try(self) -> str | None:
        """Why this generation had nothing to try, where it said so."""
        plans = [one.content.nothing_to_try for one in self.said if isinstance(one.content, Hypotheses)]
        return plans[-1] if plans else None

    def unsaid_proposal(self) -> CandidateProposal | None:
        """The Coder's message for a candidate that was made and not announced to the others."""
        if not self.created or self._speaker() != CODER:
            return None
        made = self.created[-1]
        if made.slot is None:
            return None
        return CandidateProposal(
            candidate_id=made.candidate_id,
            slot=made.slot,
            attempt=made.attempt,
            report=made.report,
            rubric=made.rubric,
        )

    def _speaker(self) -> str | None:
        return follow([as_message(one.content, one.agent) for one in self.said]).speaker

    def see(self, event: ev.Event) -> None:
        """Take in one event of this generation."""
        self.lane = event.lane
        match event:
            case ev.GenerationStarted():
                self.started = True
            case ev.MessageSent(content=Stopped()):
                # The end of a sitting, not of the conversation.
                pass
            case ev.MessageSent():
                self.said.append(event)
                self.answers.clear()
                self.created.clear()
            case ev.ModelCall(response=dict() as response):
                self.answers.setdefault(event.agent, []).append(Answer(event.purpose, response))
                self.answered[event.agent] = self.answered.get(event.agent, 0) + 1
            case ev.CandidateCreated():
                self.created.append(event)
            case _:
                pass


@dataclass(slots=True)
class Past:
    """A run so far. `seq` is that of its last event, `sittings` counts the processes that ran it.

    `totals` include the sitting that was killed, up to its last event. `unannounced` are candidates' folders
    that no event names; `notes` say what is not as it was.
    """

    run: Run
    info: RunInfo
    seq: int = 0
    sittings: int = 0
    totals: Totals = field(default_factory=Totals)
    best_id: str | None = None
    conversations: dict[int, Conversation] = field(default_factory=dict[int, Conversation])
    candidates: list[Candidate] = field(default_factory=list[Candidate])
    shown: dict[str, PassageView] = field(default_factory=dict[str, PassageView])
    unannounced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def interrupted(self) -> tuple[int, ...]:
        """The generations that were begun and not ended."""
        return tuple(number for number, one in self.conversations.items() if one.started and not one.over)

    @property
    def nothing_to_try(self) -> str | None:
        found = [one.nothing_to_try for one in self.conversations.values() if one.nothing_to_try]
        return found[-1] if found else None

    def pending(self, generations: int) -> list[int]:
        """The generations that are still to be done, or to be ended."""
        known = self.conversations
        return [
            number for number in range(1, generations + 1) if number not in known or not known[number].over
        ]


def read_past(run: Run) -> Past:
    """Read a run's record. Raises `UsageError` where ``run.json`` cannot be read."""
    past = Past(run, run.info)
    spent = _Spent()
    for event in run.events():
        past.seq = max(past.seq, event.seq)
        spent.see(event)
        match event:
            case ev.RunStarted() | ev.RunResumed():
                past.sittings += 1
            case ev.BestChanged():
                past.best_id = event.candidate_id
            case ev.PassagesRetrieved():
                past.shown.update({one.id: passage_view(one) for one in event.passages})
            case _:
                pass
        if event.generation:
            past.conversations.setdefault(event.generation, Conversation()).see(event)
    past.totals = spent.totals
    # The opening line may be damaged.
    past.sittings = max(past.sittings, min(1, past.seq))
    past.candidates = with_gaps_filled(run, run.candidates())
    for number, one in past.conversations.items():
        later = (other for n, other in past.conversations.items() if n > number and other.lane == one.lane)
        one.closed = any(other.started for other in later)
        one.said = consistent(one.said, {member.id for member in past.candidates})
    past.unannounced = _unannounced(run, past.candidates)
    return past


class _Spent:
    """Adds up what the events say was used."""

    def __init__(self) -> None:
        self._sums = Totals()
        self._before_s = 0.0
        self._since: datetime | None = None
        self._last: datetime | None = None

    def see(self, event: ev.Event) -> None:
        self._last = event.time
        match event:
            case ev.RunStarted():
                self._mark(event, 0.0)
            case ev.RunResumed() | ev.GenerationStarted() | ev.RunFinished():
                self._mark(event, event.totals.seconds)
            case ev.ModelCall():
                self._called(event)
            case ev.CandidateCreated() if event.parent_id is not None:
                self._add(candidates=1)
            case ev.EvaluationFinished() if event.candidate_id != BASELINE_ID and event.reused_from is None:
                self._add(evaluations=1, accepted=event.evaluation.accepted)
            case _:
                pass

    @property
    def totals(self) -> Totals:
        seconds = self._before_s
        if self._since is not None and self._last is not None:
            # A clock that was set back must not make a run shorter.
            seconds += max(0.0, (self._last - self._since).total_seconds())
        return self._sums.model_copy(update={"seconds": seconds})

    def _mark(self, event: ev.Event, seconds: float) -> None:
        self._before_s, self._since = seconds, event.time

    def _called(self, event: ev.ModelCall) -> None:
        cost = self._sums.cost_usd
        total = None if cost is None or event.cost_usd is None else cost + event.cost_usd
        self._sums = self._sums.model_copy(update={"cost_usd": total})
        self._add(
            model_calls=1,
            prompt_tokens=event.usage.prompt_tokens,
            completion_tokens=event.usage.completion_tokens,
        )

    def _add(self, **amounts: int) -> None:
        sums = {name: getattr(self._sums, name) + amount for name, amount in amounts.items()}
        self._sums = self._sums.model_copy(update=sums)


def _unannounced(run: Run, candidates: Iterable[Candidate]) -> tuple[str, ...]:
    known = {one.id for one in candidates}
    folder = run.path / "candidates"
    with explained("read the run", folder):
        names = sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    return tuple(name for name in names if name not in known)
