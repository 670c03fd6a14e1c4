"""The laboratory the four agents share: the population, the judge, the literature, the record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kernel_scientist.tools.evaluation import Evaluation

from . import events as ev
from .budget import Budget
from .config import Config
from .messages import Experiment, RubricPoint
from .passages import cited, passage_view
from .policies.base import Policy, Situation
from .policies.meaning import Meaning, shared_meaning
from .policies.paper import PaperPolicy
from .population import Member, Population
from .prompting import Prompt, load_prompts
from .recorder import Recorder, unified_diff
from .replies import clean
from .requests import PassageView, ProblemView, UnderWay
from .stopping import GRACE_S, StopSignal, in_thread

if TYPE_CHECKING:
    from kernel_scientist.knowledge.records import Passage

__all__ = ["Answers", "Evaluator", "Lab", "Library"]


class Evaluator(Protocol):
    """Evaluates a member of the population by id; a repeated call answers from its cache."""

    def __call__(self, candidate_id: str) -> Evaluation: ...

    def prepare(self, candidate_id: str) -> None:
        """Begin to compile a member in the background, if it can be; never waits."""
        ...


class Library(Protocol):
    """Where passages come from: a `KnowledgeBase`, or anything that searches like one."""

    def search(self, query: str, *, limit: int = 8) -> Sequence[Passage]: ...


@runtime_checkable
class SectionReader(Protocol):
    """A library that also gives the passages of a whole section, in reading order."""

    def section(self, passage_id: str, *, max_tokens: int = 1500) -> Sequence[Passage]: ...


@dataclass(slots=True)
class Answers:
    """What came of asking models: calls that `failed` or came back `empty`, answers `given`, and how many
    answers were `unusable` in what they said. `fault` is the last failure's sentence. `astray` are replies
    of a recording to something other than was asked now."""

    given: int = 0
    empty: int = 0
    failed: int = 0
    unusable: int = 0
    astray: int = 0
    fault: str = ""

    def __str__(self) -> str:
        asked = self.given + self.empty
        said = (
            [f"{self.unusable} of {asked} answers of the models could not be used"] if self.unusable else []
        )
        if self.astray:
            said.append(f"{self.astray} of {asked} replies were recorded for another request")
        return "; ".join(said)


@dataclass(slots=True)
class Lab:
    """What the agents of a session share: in each lane a lab of its own with all else in common.

    `failure` is an exception that must end the session; `shown` holds every passage shown so far, `running`
    what each lane is trying, `bases` the kernels that lanes build on now.
    """

    problem: ProblemView
    population: Population
    evaluator: Evaluator
    library: Library | None
    recorder: Recorder
    budget: Budget
    config: Config
    policy: Policy = field(default_factory=PaperPolicy)
    prompts: Mapping[str, Prompt] = field(default_factory=load_prompts)
    meaning: Meaning = field(default_factory=shared_meaning)
    stop: StopSignal = field(default_factory=StopSignal)
    failure: BaseException | None = None
    shown: dict[str, PassageView] = field(default_factory=dict[str, PassageView])
    running: dict[int, tuple[UnderWay, ...]] = field(default_factory=dict[int, tuple[UnderWay, ...]])
    answers: Answers = field(default_factory=Answers)
    bases: dict[int, str] = field(default_factory=dict[int, str])
    _judging: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def situation(self) -> Situation:
        """What the search policy sees now."""
        config = self.config
        busy = frozenset(base for lane, base in self.bases.items() if lane != self.recorder.lane)
        return Situation(self.population, self.recorder.generation, config.search, config.seed or 0, busy)

    def under_way(self) -> tuple[UnderWay, ...]:
        """What other lanes have decided to try in the generations they are in."""
        return tuple(one for lane, them in self.running.items() if lane != self.recorder.lane for one in them)

    def for_lane(self, number: int) -> Lab:
        """This lab with a lane's own record and failure; the rest stays shared, the device's lock too."""
        return replace(self, recorder=self.recorder.at(lane=number, generation=0), failure=None)

    async def evaluate(self, candidate_id: str) -> Evaluation:
        """Have a member judged in a thread; at most one at a time. A judged one is not judged again.

        The starting kernel is judged whatever the limits, and not counted: without it there is no session.
        """
        async with self._judging:
            member = self.population[candidate_id]
            if member.evaluation is not None:
                return member.evaluation
            self.stop.check()
            twin = self.population.judged_twin(member)
            if twin is not None:
                return self._reuse(member, twin)
            if member is not self.population.baseline:
                self.budget.check_evaluation()
            self.recorder.emit(ev.EvaluationStarted, candidate_id=candidate_id, tier="screen")
            began = time.perf_counter()
            work = in_thread(partial(self.evaluator, candidate_id))
            evaluation = await self.stop.with_grace(work, self._tell_of_wait)
            self.record_evaluation(member, evaluation, time.perf_counter() - began)
            return evaluation

    def _reuse(self, member: Member, twin: Member) -> Evaluation:
        """Give `member` the evaluation of a member that is the same program; it costs nothing."""
        assert twin.evaluation is not None
        note = (
            f"the same program as candidate {twin.id} (only text that changes nothing differs): not run again"
        )
        notes = (*twin.evaluation.notes, note)
        evaluation = replace(twin.evaluation, kernel_key=member.key, notes=notes, seconds={})
        member.twin_id = twin.id
        self._write_evaluation(member, evaluation, 0.0)
        return evaluation

    def _tell_of_wait(self) -> None:
        self.recorder.emit(ev.StopRequested, reason=self.stop.reason, grace_s=GRACE_S)

    def record_evaluation(self, member: Member, evaluation: Evaluation, seconds: float) -> None:
        """Write down an evaluation, charge it, and see whether there is a new best."""
        if member is not self.population.baseline:
            self.budget.charge_evaluation(accepted=evaluation.accepted)
        self._write_evaluation(member, evaluation, seconds)
        if self.population.leads(member):
            previous, self.population.best_id = self.population.best_id, member.id
            self.announce_best(member, previous)

    def announce_best(self, member: Member, previous_id: str) -> None:
        """Record that `member` leads now."""
        evaluation = member.evaluation
        assert evaluation is not None and evaluation.speedup is not None, "what leads was measured"
        self.recorder.emit(
            ev.BestChanged,
            candidate_id=member.id,
            previous_id=previous_id,
            speedup=evaluation.speedup,
            tier=evaluation.tier,
        )

    def _write_evaluation(self, member: Member, evaluation: Evaluation, seconds: float) -> None:
        self.population.record(member.id, evaluation)
        self.recorder.write_evaluation(member.id, evaluation)
        event = self.recorder.emit(
            ev.EvaluationFinished,
            candidate_id=member.id,
            evaluation=evaluation,
            seconds=seconds,
            reused_from=member.twin_id,
        )
        member.evidence = event.seq

    def search(self, agent: str, query: str, limit: int) -> list[PassageView]:
        """Passages on `query`, recorded as shown."""
        if self.library is None or limit < 1:
            return []
        # In this thread: a search takes milliseconds, and SQLite connections belong to their thread.
        words = clean(query, 500).strip()
        return self._show(agent, query, self.library.search(words, limit=limit) if words else [])

    @property
    def reads_sections(self) -> bool:
        return isinstance(self.library, SectionReader)

    def read_section(self, agent: str, passage_id: str) -> list[PassageView]:
        """The section that a passage is of, recorded as shown. Raises `UsageError` for an unknown id."""
        assert isinstance(self.library, SectionReader)
        name = clean(passage_id, 300).strip()
        return self._show(agent, f"the section of {name}", self.library.section(name))

    def _show(self, agent: str, query: str, passages: Sequence[Passage]) -> list[PassageView]:
        shown = [cited(one) for one in passages]
        self.recorder.emit(ev.PassagesRetrieved, agent=agent, query=query, passages=tuple(shown))
        views = [passage_view(one) for one in shown]
        self.shown.update({one.id: one for one in views})
        return views

    def note(self, where: str, message: str) -> None:
        """Record something that went wrong and that the session gets over."""
        self.recorder.emit(ev.ErrorRecorded, where=where, message=clean(message, 1000), recovered=True)

    def create_candidate(
        self, source: str, *, base: Member, reference_id: str | None, slot: int, attempt: int,
        experiment: Experiment, report: str, rubric: Sequence[RubricPoint] = (),
    ) -> Member:  # fmt: skip
        """Add a candidate to the population and to the run folder."""
        generation = self.recorder.generation
        member = self.population.add(
            source, parent_id=base.id, reference_id=reference_id, generation=generation,
            slot=slot, attempt=attempt, experiment=experiment,
        )  # fmt: skip
        self.budget.charge_candidate()
        # Compiled while the next agent thinks: its evaluation finds the builds.
        if self.population.judged_twin(member) is None:
            self.evaluator.prepare(member.id)
        self.announce(member, report, rubric)
        return member

    def announce(self, member: Member, report: str = "", rubric: Sequence[RubricPoint] = ()) -> None:
        """Write a member's files, then the event that tells of it."""
        points = "".join(f"\n{number}. {one.text}" for number, one in enumerate(rubric, start=1))
        path = self.recorder.write_candidate(member.id, member.source, f"{report}\n{points}".strip())
        parent = None if member.parent_id is None else self.population[member.parent_id]
        diff = "" if parent is None else unified_diff(parent.source, member.source, parent.id, member.id)
        self.recorder.emit(
            ev.CandidateCreated,
            candidate_id=member.id,
            parent_id=member.parent_id,
            reference_id=member.reference_id,
            slot=member.slot,
            attempt=member.attempt,
            path=path,
            key=member.key,
            diff=diff,
            report=report,
            rubric=tuple(rubric),
        )
