"""What a run's report is made of, read from its record in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_scientist.tools.evaluation import ShapeTiming

from . import events as ev
from .messages import Finding, Hypotheses, Selection
from .run import BASELINE_ID, Candidate, Run, RunInfo

__all__ = ["Facts", "GenerationFacts", "UsageFacts", "collect_facts", "ref"]


@dataclass(slots=True)
class GenerationFacts:
    """What was chosen and planned in a generation, each with its event."""

    selection: tuple[Selection, int] | None = None
    plan: tuple[Hypotheses, int] | None = None


@dataclass(slots=True)
class UsageFacts:
    """The model calls of one agent, between two events."""

    first: int
    last: int
    calls: int = 0
    failed: int = 0
    tokens: int = 0


@dataclass(slots=True)
class Facts:
    """`started` and `finished` are events; `findings` maps a candidate to the event of its finding."""

    info: RunInfo
    candidates: list[Candidate]
    started: int | None = None
    finished: int | None = None
    confirmed: ev.ComparisonFinished | None = None
    estimated: bool = False
    generations: dict[int, GenerationFacts] = field(default_factory=dict[int, GenerationFacts])
    findings: dict[str, int] = field(default_factory=dict[str, int])
    usage: dict[str, UsageFacts] = field(default_factory=dict[str, UsageFacts])
    sittings: list[ev.RunResumed] = field(default_factory=list[ev.RunResumed])
    errors: list[ev.ErrorRecorded] = field(default_factory=list[ev.ErrorRecorded])
    passages: dict[str, tuple[ev.CitedPassage, int]] = field(
        default_factory=dict[str, tuple[ev.CitedPassage, int]]
    )

    @property
    def tried(self) -> list[Candidate]:
        """Every candidate but the starting kernel."""
        return [one for one in self.candidates if one.id != BASELINE_ID]

    @property
    def cited(self) -> dict[str, tuple[ev.CitedPassage, int]]:
        """The passages that experiments cite, by their names."""
        names = {
            name for one in self.tried if one.experiment is not None for name in one.experiment.citations
        }
        return {name: found for name, found in self.passages.items() if name in names}

    def candidate(self, candidate_id: str) -> Candidate | None:
        return next((one for one in self.candidates if one.id == candidate_id), None)

    def evidence(self, candidate_id: str) -> int | None:
        """The event of a candidate's evaluation."""
        one = self.candidate(candidate_id)
        return None if one is None else one.evidence

    def uplift(self, one: Candidate) -> float | None:
        return None if one.finding is None else one.finding.measured_uplift

    def lineage(self, one: Candidate) -> list[Candidate]:
        """The candidate's ancestors from the starting kernel on, itself last."""
        line = [one]
        while line[0].parent_id is not None:
            parent = self.candidate(line[0].parent_id)
            if parent is None or parent in line:
                break
            line.insert(0, parent)
        return line

    def best_timings(self, best: Candidate) -> tuple[Sequence[ShapeTiming], int | None]:
        """The best kernel's times: of the comparison that confirmed it, else of its evaluation."""
        if self.confirmed is not None:
            comparison = self.confirmed.comparison
            return comparison.timings or comparison.b.timings, self.confirmed.seq
        return (best.evaluation.timings if best.evaluation is not None else ()), best.evidence


def collect_facts(run: Run) -> Facts:
    """Read a run's record. Raises `UsageError` when its ``run.json`` cannot be read."""
    facts = Facts(run.info, run.candidates())
    best_id = facts.info.best.candidate_id if facts.info.best is not None else None
    for event in run.events():
        match event:
            case ev.RunStarted():
                facts.started = event.seq
            case ev.RunResumed():
                facts.sittings.append(event)
            case ev.RunFinished():
                facts.finished = event.seq
            case ev.GenerationStarted():
                facts.generations.setdefault(event.generation, GenerationFacts())
            case ev.MessageSent():
                _add_message(facts, event)
            case ev.ModelCall():
                _add_call(facts, event)
            case ev.PassagesRetrieved():
                for passage in event.passages:
                    facts.passages.setdefault(passage.id, (passage, event.seq))
            case ev.ComparisonFinished() if (event.a_id, event.b_id) == (BASELINE_ID, best_id):
                facts.confirmed = event
            case ev.ErrorRecorded():
                facts.errors.append(event)
            case _:
                pass
    return facts


def _add_message(facts: Facts, event: ev.MessageSent) -> None:
    generation = facts.generations.setdefault(event.generation, GenerationFacts())
    match event.content:
        case Selection() as selection:
            generation.selection = (selection, event.seq)
        case Hypotheses() as plan:
            generation.plan = (plan, event.seq)
        case Finding() as finding:
            facts.findings[finding.candidate_id] = event.seq
        case _:
            pass


def _add_call(facts: Facts, event: ev.ModelCall) -> None:
    use = facts.usage.setdefault(event.agent, UsageFacts(event.seq, event.seq))
    use.last = event.seq
    use.calls += 1
    use.failed += event.error is not None
    use.tokens += event.usage.total_tokens
    facts.estimated |= event.usage.estimated


def ref(seq: int | None) -> str:
    """The event that the figures before it come from."""
    return "" if seq is None else f" (#{seq})"
