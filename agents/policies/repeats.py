"""Experiments that repeat what was tried, found before they cost a conversation and an evaluation.

An experiment repeats another when it means the same change to the same kernel: one that was tried on this
Base and measured, or one that the Base already holds because it descends from it. The same change to another
Base is another experiment, and one that never compiled was not tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..messages import Experiment, Refusal
from ..population import Member, Population
from .meaning import Meaning, sets_values

__all__ = ["find_repeats"]


def find_repeats(
    experiments: Sequence[Experiment], base: Member, population: Population, meaning: Meaning
) -> tuple[Refusal, ...]:
    """Those of `experiments` not worth running, each with what it repeats."""
    on_base, inherited = population.tally.changes(base.id), _inherited(base, population)
    refusals: list[Refusal] = []
    kept: list[int] = []
    for index, one in enumerate(experiments):
        # Values set anew on another kernel make another kernel; only a change of the code is there to stay.
        known = on_base.like(one) if sets_values(one) else [*on_base.like(one), *inherited]
        found = meaning.nearest(one, (_of(member) for member in known))
        if found is not None:
            near = known[found.index].id
            refusals.append(Refusal(experiment=index, candidate_id=near, similarity=found.similarity))
            continue
        twin = meaning.nearest(one, (experiments[other] for other in kept))
        if twin is not None:
            refusals.append(Refusal(experiment=index, repeats=kept[twin.index], similarity=twin.similarity))
            continue
        kept.append(index)
    return tuple(refusals)


def _inherited(base: Member, population: Population) -> list[Member]:
    """The Base and its forefathers, as far as an experiment made them, in the order of creation."""
    return [one for one in reversed(population.line(base)) if one.experiment is not None]


def _of(member: Member) -> Experiment:
    assert member.experiment is not None
    return member.experiment
