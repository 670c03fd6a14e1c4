"""How a search policy is asked, and what the policies share.

A policy decides which kernel the next conversation builds on. It is a pure function of the population, the
generation and the seed: it keeps nothing between calls, so a resumed run goes on as the first would have.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ..config import SearchConfig
from ..population import Member, Population

__all__ = ["Parents", "Policy", "Situation", "contrast_to", "fruitless", "shape_speedups"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What a policy sees. `busy` are Bases that other conversations of the run are at work on."""

    population: Population
    generation: int
    settings: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    busy: frozenset[str] = frozenset()

    @property
    def random(self) -> random.Random:
        """A generator that is the same whenever this generation is asked about."""
        return random.Random(f"{self.seed}/{self.generation}")

    def open_to_work(self, members: Iterable[Member]) -> list[Member]:
        """Those that nobody works on and that were not built on in vain too often, where there are any."""
        given = list(members)
        free = [one for one in given if one.id not in self.busy]
        fresh = [one for one in free if fruitless(one, self.population) < self.settings.patience]
        return fresh or free or given


@dataclass(frozen=True, slots=True)
class Parents:
    """The kernel to build on, a contrasting one, why, and (`goal`) what the Researcher should look for."""

    base_id: str
    reference_id: str | None
    reasons: str
    goal: str = ""


class Policy(Protocol):
    """Chooses Base and Reference; ``None`` leaves the choice to the Selector's model."""

    @property
    def name(self) -> str: ...

    def choose(self, situation: Situation) -> Parents | None:
        """Both ids must be in the population, and the Base an accepted member."""
        ...


def fruitless(member: Member, population: Population) -> int:
    """In how many generations `member` was built on and nothing faster came of it."""
    children = [one for one in population.children(member) if one.evaluation is not None]
    generations = {one.generation for one in children}
    better = {one.generation for one in children if (one.speedup or 0.0) > (member.speedup or 1.0)}
    return len(generations - better)


def shape_speedups(member: Member) -> tuple[float, ...]:
    """Speed-up over the starting kernel on each benchmark shape; empty when not measured."""
    if member.evaluation is None or not member.accepted:
        return ()
    return tuple(1.0 if one.speedup is None else one.speedup.value for one in member.evaluation.timings)


def contrast_to(base: Member, population: Population) -> Member | None:
    """The member to compare `base` with: the one furthest ahead of it on some shape, else the fastest of
    another line of descent, else the fastest other; ``None`` when there is no other."""
    others = [one for one in population.accepted() if one is not base]
    if not others:
        return None
    ahead = max(others, key=lambda one: _lead(one, base))
    if _lead(ahead, base) > 1.0:
        return ahead
    line = population.ancestry(base)
    apart = [one for one in others if one.id not in line and base.id not in population.ancestry(one)]
    return (apart or others)[0]


def _lead(member: Member, base: Member) -> float:
    """How many times faster `member` is on the shape where that is most."""
    ours, theirs = shape_speedups(member), shape_speedups(base)
    if len(ours) != len(theirs):
        return 0.0
    return max((a / b for a, b in zip(ours, theirs, strict=True) if b > 0), default=0.0)
