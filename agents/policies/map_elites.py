"""MAP-Elites: the fastest kernel of each kind of behaviour is kept and built on (Mouret & Clune, arXiv
1504.04909). A kind is the technique that made a kernel with what it takes of the machine."""

from __future__ import annotations

from typing import final

from ..population import Member, Population
from .base import Parents, Situation
from .behaviour import Behaviour, behaviour_of
from .strategy import STRATEGIES

__all__ = ["MapElitesPolicy", "archive_of"]

_UNTRIED_SHOWN = 6


@final
class MapElitesPolicy:
    """Builds on an elite drawn evenly from the archive; the Reference behaves least like it."""

    name = "map-elites"

    def choose(self, situation: Situation) -> Parents:
        """An elite that is open to work, and the goal to fill cells that are empty."""
        archive = archive_of(situation.population)
        base = situation.random.choice(situation.open_to_work(archive.values()))
        kind = behaviour_of(base)
        others = [(cell, one) for cell, one in archive.items() if one is not base]
        reference = max(others, key=lambda it: (it[0].differs(kind), it[1].speedup or 0.0), default=None)
        reasons = (
            f"By policy map-elites: {base.id} is the fastest of its kind ({kind}), "
            f"one of {len(archive)} kinds found so far."
        )
        if reference is not None:
            reasons += f" {reference[1].id} behaves least like it ({reference[0]})."
        return Parents(base.id, None if reference is None else reference[1].id, reasons, _goal(archive))


def archive_of(population: Population) -> dict[Behaviour, Member]:
    """The fastest accepted member of each behaviour."""
    archive: dict[Behaviour, Member] = {}
    for member in population.accepted():
        archive.setdefault(behaviour_of(member), member)
    return archive


def _goal(archive: dict[Behaviour, Member]) -> str:
    made = {cell.technique for cell in archive}
    untried = [
        name for name in STRATEGIES if name not in made and name not in ("portfolio", "tuning", "other")
    ]
    if not untried:
        return "Every strategy has an accepted kernel; look for kinds of resource use that have none."
    return f"No accepted kernel comes from these strategies yet: {', '.join(untried[:_UNTRIED_SHOWN])}."
