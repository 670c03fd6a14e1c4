"""Greedy: always on with the fastest, until it has been tried in vain too often."""

from __future__ import annotations

from typing import final

from .base import Parents, Situation, contrast_to, fruitless

__all__ = ["GreedyPolicy"]


@final
class GreedyPolicy:
    """Builds on the fastest kernel; after `patience` generations without a gain, on the next fastest."""

    name = "greedy"

    def choose(self, situation: Situation) -> Parents:
        """The fastest that is open to work, and what contrasts with it."""
        population = situation.population
        ranked = population.accepted()
        base = situation.open_to_work(ranked)[0]
        reference = contrast_to(base, population)
        place = ranked.index(base) + 1
        reasons = f"By policy greedy: {base.id} is number {place} of {len(ranked)} accepted kernels by speed"
        if place > 1:
            tries = fruitless(ranked[0], population)
            reasons += f"; {ranked[0].id} was built on {tries} times in vain or is being worked on"
        return Parents(base.id, None if reference is None else reference.id, f"{reasons}.")
