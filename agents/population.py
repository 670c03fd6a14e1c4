"""The kernels of a session in memory: who descends from whom, how each fared, which is best."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from kernel_scientist.sandbox.errors import UsageError
from kernel_scientist.tools.errors import PlanError
from kernel_scientist.tools.evaluation import Evaluation
from kernel_scientist.tools.kernel import Kernel

from .messages import Experiment, Finding
from .policies.normal_form import normal_key
from .run import BASELINE_ID, Candidate
from .tally import Tally

__all__ = ["Member", "Population", "Sources", "source_key"]


@dataclass(slots=True)
class Member:
    """One kernel of the population; `kernel` is ``None`` when its plan does not parse (`fault`).

    `key` names its text, `form` the program whatever its comments and names. `twin_id` is the member whose
    evaluation it was given, `evidence` the event of its evaluation.
    """

    id: str
    source: str
    key: str
    form: str
    kernel: Kernel | None
    fault: PlanError | None
    parent_id: str | None = None
    reference_id: str | None = None
    generation: int = 0
    slot: int | None = None
    attempt: int = 1
    experiment: Experiment | None = None
    evaluation: Evaluation | None = None
    finding: Finding | None = None
    twin_id: str | None = None
    evidence: int | None = None

    @property
    def accepted(self) -> bool:
        return self.evaluation is not None and self.evaluation.accepted

    @property
    def speedup(self) -> float | None:
        """Over the starting kernel; ``None`` when not measured."""
        if self.evaluation is None or not self.evaluation.accepted or self.evaluation.speedup is None:
            return None
        return self.evaluation.speedup.value


def source_key(source: str) -> str:
    """What makes two sources the same kernel: their text without comments' and lines' trailing blanks."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


@final
class Population:
    """Members by id in the order of creation.

    `tally` is what came of them; `record` and `conclude`, which give evaluations and findings, keep it.
    """

    def __init__(self, baseline: Kernel) -> None:
        self.tally = Tally()
        self._members: dict[str, Member] = {}
        self._by_source: dict[str, str] = {}
        self._by_form: dict[str, list[Member]] = {}
        self._children: dict[str, list[Member]] = {}
        self.add(baseline.source)
        self.best_id = BASELINE_ID

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __contains__(self, candidate_id: object) -> bool:
        return candidate_id in self._members

    def __getitem__(self, candidate_id: str) -> Member:
        return self._members[candidate_id]

    @property
    def baseline(self) -> Member:
        return self._members[BASELINE_ID]

    @property
    def best(self) -> Member:
        return self._members[self.best_id]

    def add(
        self,
        source: str,
        *,
        parent_id: str | None = None,
        reference_id: str | None = None,
        generation: int = 0,
        slot: int | None = None,
        attempt: int = 1,
        experiment: Experiment | None = None,
    ) -> Member:
        """Add a kernel under the next id."""
        kernel: Kernel | None = None
        fault: PlanError | None = None
        try:
            kernel = Kernel.parse(source)
        except PlanError as error:
            fault = error
        key = (
            kernel.key if kernel is not None else hashlib.sha256(source.encode(errors="replace")).hexdigest()
        )
        member = Member(
            f"{len(self._members):04d}", source, key, normal_key(kernel, source), kernel, fault,
            parent_id, reference_id, generation, slot, attempt, experiment,
        )  # fmt: skip
        self._members[member.id] = member
        self._by_source.setdefault(source_key(source), member.id)
        self._by_form.setdefault(member.form, []).append(member)
        if parent_id is not None:
            self._children.setdefault(parent_id, []).append(member)
        return member

    def children(self, member: Member) -> Sequence[Member]:
        """The members built on `member`, in the order of creation."""
        return self._children.get(member.id, ())

    def line(self, member: Member) -> list[Member]:
        """`member` and all it descends from, itself first."""
        line = [member]
        known = {member.id}
        while (parent := line[-1].parent_id) is not None and parent in self._members and parent not in known:
            known.add(parent)
            line.append(self._members[parent])
        return line

    def ancestry(self, member: Member) -> set[str]:
        """The ids of `member` and all it descends from."""
        return {one.id for one in self.line(member)}

    def restore(self, candidate: Candidate) -> Member:
        """Take over a candidate of a recorded run, in the order of creation. Raises `UsageError`."""
        if candidate.id == BASELINE_ID:
            member = self.baseline
        else:
            member = self.add(
                candidate.recorded_source(),
                parent_id=candidate.parent_id,
                reference_id=candidate.reference_id,
                generation=candidate.generation,
                slot=candidate.slot,
                attempt=candidate.attempt,
                experiment=candidate.experiment,
            )
        if member.id != candidate.id:
            raise UsageError(
                f"The record of this run is damaged: candidate {candidate.id} is where {member.id} should be."
            )
        member.twin_id, member.evidence = candidate.twin_id, candidate.evidence
        if candidate.evaluation is not None:
            self.record(member.id, candidate.evaluation)
        if candidate.finding is not None:
            self.conclude(member, candidate.finding)
        if self.leads(member):
            self.best_id = member.id
        return member

    def find(self, source: str) -> Member | None:
        """The member with the same source, if there is one."""
        found = self._by_source.get(source_key(source))
        return None if found is None else self._members[found]

    def judged_twin(self, member: Member) -> Member | None:
        """A judged member that is the same program as `member` (`normal_key`), if there is one."""
        same = self._by_form.get(member.form, ())
        return next((one for one in same if one is not member and one.evaluation is not None), None)

    def kernel(self, candidate_id: str) -> Kernel:
        """The kernel of a member. Raises `KeyError`, or `PlanError` when its plan does not parse."""
        member = self._members[candidate_id]
        if member.kernel is None:
            assert member.fault is not None
            raise member.fault
        return member.kernel

    def record(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Give a member its evaluation, which stays."""
        member = self._members[candidate_id]
        assert member.evaluation is None, "a member is judged once"
        member.evaluation = evaluation
        self.tally.judge(member)

    def conclude(self, member: Member, finding: Finding) -> None:
        """Give a member its finding, which stays."""
        assert member.finding is None, "there is one finding on a member"
        member.finding = finding
        self.tally.conclude(member)

    def leads(self, member: Member) -> bool:
        """Whether `member` is measured faster than the best so far."""
        if member.speedup is None or member.id == self.best_id:
            return False
        best = self.best.speedup
        return member.speedup > (1.0 if best is None else best)

    def accepted(self) -> list[Member]:
        """The members that passed, fastest first."""
        return list(self.tally.fastest)


@final
class Sources:
    """The members for the judge, which works in another thread; its session records what it finds."""

    def __init__(self, population: Population) -> None:
        self._population = population

    def kernel(self, candidate_id: str) -> Kernel:
        """As `Population.kernel`."""
        return self._population.kernel(candidate_id)

    def record(self, candidate_id: str, evaluation: Evaluation) -> None:
        """Nothing: two threads must not write to one population."""
