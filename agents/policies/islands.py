"""Islands: several lines of descent side by side, which pass their best on now and then (Whitley, Rana &
Heckendorn, "The island model genetic algorithm", 1999).

Which island a kernel lives on follows from its generation alone, so nothing has to be remembered: generation
g works on island (g - 1) mod n.
"""

from __future__ import annotations

from typing import final

from ..population import Member
from .base import Parents, Situation, contrast_to

__all__ = ["IslandsPolicy", "island_of"]

_TOURNAMENT = 2


@final
class IslandsPolicy:
    """Takes turns over `islands`; every `migrate_every` rounds the neighbour's best joins an island."""

    name = "islands"

    def choose(self, situation: Situation) -> Parents:
        """The winner of a small tournament on the island whose turn it is."""
        population, settings = situation.population, situation.settings
        island = island_of(situation.generation, settings.islands)
        natives = [one for one in population.accepted() if _lives_on(one, island, settings.islands)]
        migrant = self._migrant(situation, island)
        pool = situation.open_to_work([*natives, *([migrant] if migrant is not None else [])])
        pool = pool or [population.baseline]
        rivals = situation.random.sample(pool, min(_TOURNAMENT, len(pool)))
        base = max(rivals, key=lambda one: one.speedup or 0.0)
        reference = contrast_to(base, population)
        came = " (it came from the neighbouring island)" if base is migrant else ""
        reasons = (
            f"By policy islands: turn of island {island + 1} of {settings.islands} with {len(natives)} "
            f"kernels of its own; {base.id} won the tournament{came}."
        )
        return Parents(base.id, None if reference is None else reference.id, reasons)

    def _migrant(self, situation: Situation, island: int) -> Member | None:
        """The best of the island before this one, in rounds of migration."""
        settings = situation.settings
        turn = (situation.generation - 1) // settings.islands
        if turn == 0 or turn % settings.migrate_every:
            return None
        neighbour = (island - 1) % settings.islands
        accepted = situation.population.accepted()
        own = [one for one in accepted if one.generation and _lives_on(one, neighbour, settings.islands)]
        return own[0] if own else None


def island_of(generation: int, islands: int) -> int:
    """The island that `generation` (from 1) works on, from 0."""
    return (generation - 1) % islands


def _lives_on(member: Member, island: int, islands: int) -> bool:
    """The starting kernel is at home on every island."""
    return member.generation == 0 or island_of(member.generation, islands) == island
