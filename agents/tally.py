"""What the members of a population came to, kept up to date as each is judged: no request walks them all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, final

from .policies.changes import TriedChanges
from .policies.record import StrategyTally

if TYPE_CHECKING:
    from .population import Member

__all__ = ["Tally", "TuningTally"]

Values = tuple[int | float | str, ...]


@final
class TuningTally:
    """The configurations tried of one set of tunables; each stands for the best that it did in any code.

    Values are in the order of the tunables' sorted names.
    """

    def __init__(self) -> None:
        self._best: dict[Values, Member] = {}
        self._first: dict[Values, int] = {}
        self._order: list[tuple[int, Values]] = []
        self._ranked: list[tuple[float, int, Values]] = []

    def __len__(self) -> int:
        return len(self._best)

    def add(self, member: Member, values: Values) -> None:
        """Take in a judged member that has these values."""
        known = self._best.get(values)
        if known is None:
            self._first[values] = number_of(member)
            insort(self._order, (number_of(member), values), key=_number)
        elif (member.speedup or 0.0) <= (known.speedup or 0.0):
            return
        else:
            rank = self._rank(known, values)
            del self._ranked[bisect_left(self._ranked, rank[:2], key=_rank)]
        self._best[values] = member
        insort(self._ranked, self._rank(member, values), key=_rank)

    def _rank(self, member: Member, values: Values) -> tuple[float, int, Values]:
        return -(member.speedup or 0.0), self._first[values], values

    def shown(self, most: int) -> list[tuple[Member, Values]]:
        """In the order first tried; of more than `most`, the fastest half and the latest of the others."""
        chosen = self._order
        if len(chosen) > most:
            fastest = {values: (first, values) for _, first, values in self._ranked[: most // 2]}
            others = (one for one in reversed(self._order) if one[1] not in fastest)
            chosen = sorted((*fastest.values(), *islice(others, most - most // 2)), key=_number)
        return [(self._best[values], values) for _, values in chosen]


def _number(entry: tuple[int, Values]) -> int:
    return entry[0]


def _rank(entry: tuple[float, int, Values]) -> tuple[float, int]:
    return entry[:2]


@final
class Tally:
    """Judged members in the orders that requests and policies want.

    `judged` are all, `tried` those that an experiment made, `failed` those of them that were not accepted,
    by their ids; `fastest` are the accepted ones, fastest first; `strategies` is what came of each.
    """

    def __init__(self) -> None:
        self.judged: list[Member] = []
        self.tried: list[Member] = []
        self.failed: list[Member] = []
        self.fastest: list[Member] = []
        self.strategies = StrategyTally()
        self._champions: dict[str, Member] = {}
        self._tunings: dict[frozenset[str], TuningTally] = {}
        self._changes: dict[str, TriedChanges[Member]] = {}

    @property
    def champions(self) -> Sequence[Member]:
        """The fastest accepted member of each strategy, the fastest of them first."""
        return sorted(self._champions.values(), key=_by_speed)

    def tuning(self, names: Sequence[str]) -> TuningTally:
        """The configurations that were tried of exactly these tunables."""
        return self._tunings.get(frozenset(names), TuningTally())

    def changes(self, base_id: str) -> TriedChanges[Member]:
        """The experiments on this Base that were measured."""
        return self._changes.get(base_id, TriedChanges())

    def judge(self, member: Member) -> None:
        """Take in a member that has just been given its evaluation."""
        insort(self.judged, member, key=number_of)
        self._add_tuning(member)
        if member.accepted:
            insort(self.fastest, member, key=_by_speed)
        if member.experiment is None:
            return
        insort(self.tried, member, key=number_of)
        if not member.accepted:
            insort(self.failed, member, key=number_of)
            return
        if member.parent_id is not None:
            self._changes.setdefault(member.parent_id, TriedChanges()).add(member)
        champion = self._champions.setdefault(member.experiment.strategy, member)
        if _by_speed(member) < _by_speed(champion):
            self._champions[member.experiment.strategy] = member

    def conclude(self, member: Member) -> None:
        """Take in a member that has just been given its finding."""
        self.strategies.add(member)

    def _add_tuning(self, member: Member) -> None:
        if member.kernel is None or not member.kernel.plan.tune:
            return
        plan = member.kernel.plan
        values = tuple(plan.constants[name] for name in sorted(plan.tune))
        self._tunings.setdefault(frozenset(plan.tune), TuningTally()).add(member, values)


def number_of(member: Member) -> int:
    """The place of a member in the order of creation."""
    return int(member.id)


def _by_speed(member: Member) -> tuple[float, int]:
    return -(member.speedup or 0.0), number_of(member)
