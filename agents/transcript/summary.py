"""What a run amounts to so far, gathered event by event: its candidates, the best, what was used.

Only small facts are kept; sources, diffs, logs and passages are fetched from the record when asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple, final

from kernel_scientist.tools.evaluation import Evaluation, Interval

from .. import events as ev
from ..messages import Experiment, Finding, Hypotheses
from .record import Entry

__all__ = ["NOT_JUDGED", "CallUse", "CandidateRow", "Lead", "Summary"]

NOT_JUDGED = "not judged"


@dataclass(slots=True)
class CandidateRow:
    """A candidate in a line; the ``_seq`` fields name the events that the rest comes from."""

    id: str
    parent_id: str | None
    reference_id: str | None
    generation: int
    slot: int | None
    attempt: int
    lane: int
    path: str
    created_seq: int
    created_s: float
    verdict: str = NOT_JUDGED
    tier: str | None = None
    speedup: Interval | None = None
    time_us: float | None = None
    checks_passed: int = 0
    checks: int = 0
    judged_seq: int | None = None
    plan_seq: int | None = None
    experiment: Experiment | None = None
    criterion: str | None = None
    finding_seq: int | None = None
    measured_uplift: float | None = None
    calibration: str | None = None

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def last_seq(self) -> int:
        """The last event that changed this line."""
        return max(self.created_seq, self.judged_seq or 0, self.finding_seq or 0)


@dataclass(frozen=True, slots=True)
class Lead:
    """A candidate became the best at `at_s` seconds into the run."""

    seq: int
    at_s: float
    candidate_id: str
    speedup: Interval
    tier: str


class CallUse(NamedTuple):
    """What one model call used, `at_s` seconds into the run. A long run has very many."""

    seq: int
    at_s: float
    agent: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost_usd: float | None
    seconds: float
    failed: bool


@final
@dataclass(slots=True)
class Summary:
    """Give `take` to a `Record` as its listener."""

    candidates: dict[str, CandidateRow] = field(default_factory=dict[str, CandidateRow])
    leads: list[Lead] = field(default_factory=list[Lead])
    calls: list[CallUse] = field(default_factory=list[CallUse])
    comparisons: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    passages: dict[str, int] = field(default_factory=dict[str, int])
    errors: list[int] = field(default_factory=list[int])
    judging_s: float = 0.0
    started: ev.RunStarted | None = None
    finished: ev.RunFinished | None = None
    last_s: float = 0.0
    start: float | None = None
    plans: dict[int, tuple[int, int, Hypotheses]] = field(
        default_factory=dict[int, tuple[int, int, Hypotheses]]
    )
    """By lane its last plan, with the generation and the event: a lane's generations follow one another."""

    def reset(self) -> None:
        """Forget everything taken in."""
        fresh = Summary()
        for one in fields(self):
            setattr(self, one.name, getattr(fresh, one.name))

    @property
    def verdicts(self) -> dict[str, str]:
        return {name: row.verdict for name, row in self.candidates.items()}

    @property
    def estimated(self) -> bool:
        """Whether some tokens were counted here because the endpoint reported none."""
        return any(call.estimated and not call.failed for call in self.calls)

    def take(self, event: ev.Event, entry: Entry) -> None:
        """Take in one event."""
        at = event.time.timestamp()
        if self.start is None:
            self.start = at
        self.last_s = max(self.last_s, at - self.start)
        match event:
            # The most frequent kind first: to find that a value is of another class takes pydantic long.
            case ev.ModelCall():
                self._call(event)
            case ev.SpeakerSelected() | ev.EvaluationStarted():
                return
            case ev.RunStarted():
                self.started = event
            case ev.RunFinished():
                self.finished = event
            case ev.ErrorRecorded():
                self.errors.append(event.seq)
            case ev.PassagesRetrieved():
                for passage in event.passages:
                    self.passages.setdefault(passage.id, event.seq)
            case _:
                self._candidate(event, entry)

    def _call(self, event: ev.ModelCall) -> None:
        usage = event.usage
        self.calls.append(
            CallUse(
                event.seq,
                self.last_s,
                event.agent,
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.estimated,
                event.cost_usd,
                event.seconds,
                event.error is not None,
            )
        )

    def _candidate(self, event: ev.Event, entry: Entry) -> None:
        match event:
            case ev.CandidateCreated():
                self._created(event, entry)
            case ev.EvaluationFinished():
                self.judging_s += event.seconds
                self._judged(event)
            case ev.ComparisonFinished():
                self.judging_s += event.seconds
                self.comparisons[event.a_id, event.b_id] = event.seq
            case ev.BestChanged():
                self.leads.append(Lead(event.seq, self.last_s, event.candidate_id, event.speedup, event.tier))
            case ev.MessageSent(content=Hypotheses() as plan):
                self.plans[entry.lane] = (event.generation, event.seq, plan)
            case ev.MessageSent(content=Finding() as finding):
                self._found(event.seq, finding)
            case _:
                return

    def _created(self, event: ev.CandidateCreated, entry: Entry) -> None:
        row = CandidateRow(
            event.candidate_id, event.parent_id, event.reference_id, event.generation, event.slot,
            event.attempt, entry.lane, event.path, event.seq, self.last_s,
        )  # fmt: skip
        generation, seq, plan = self.plans.get(entry.lane, (None, None, None))
        if (
            plan is not None
            and generation == event.generation
            and event.slot is not None
            and event.slot < len(plan.chosen)
        ):
            choice = plan.chosen[event.slot]
            row.plan_seq, row.criterion = seq, choice.criterion
            row.experiment = plan.experiments[choice.experiment]
        self.candidates[event.candidate_id] = row

    def _judged(self, event: ev.EvaluationFinished) -> None:
        row = self.candidates.get(event.candidate_id)
        if row is None:
            return
        one: Evaluation = event.evaluation
        row.verdict, row.tier, row.judged_seq = one.verdict.value, one.tier, event.seq
        row.time_us = one.time_us
        row.speedup = one.speedup
        row.checks = len(one.checks)
        row.checks_passed = sum(check.passed for check in one.checks)

    def _found(self, seq: int, finding: Finding) -> None:
        row = self.candidates.get(finding.candidate_id)
        if row is not None:
            row.finding_seq = seq
            row.measured_uplift, row.calibration = finding.measured_uplift, finding.calibration

    def ancestry(self, name: str) -> list[CandidateRow]:
        """The candidate with that id and those that it came from, the starting kernel first."""
        chain: list[CandidateRow] = []
        seen: set[str] = set()
        row = self.candidates.get(name)
        while row is not None and row.id not in seen:
            seen.add(row.id)
            chain.append(row)
            row = self.candidates.get(row.parent_id) if row.parent_id else None
        return chain[::-1]
