"""Whether a portfolio is worth a try: which kernels lead on which shapes, and what joining them promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_scientist.tools.evaluation import Interval

from ..config import SearchConfig
from ..messages import Experiment
from ..population import Member, Population
from .portfolio import JoinError, join_kernels
from .strategy import strategy_named

__all__ = ["Portfolio", "leaders", "propose_portfolio"]

MOST_VARIANTS = 4
"""Kernels in a portfolio; more are hardly worth their code."""


@dataclass(frozen=True, slots=True)
class Portfolio:
    """A joined kernel: its text, its fastest part (`base`), the others, the experiment to file it as."""

    source: str
    base: Member
    others: tuple[Member, ...]
    experiment: Experiment
    report: str


def propose_portfolio(population: Population, settings: SearchConfig) -> Portfolio | str | None:
    """The portfolio of the best kernels on each shape; a sentence when they cannot be joined.

    ``None`` when one kernel leads on all shapes, or the others by too little to be worth it.
    """
    winners = leaders(population)
    parts = list({one.id: one for one in winners}.values())
    if len(parts) < 2:
        return None
    gain = 100.0 * (_promise(winners) / (population.best.speedup or 1.0) - 1.0)
    if gain < settings.portfolio_gain:
        return None
    base = max(parts, key=lambda one: one.speedup or 0.0)
    assert base.evaluation is not None
    shapes = [one.shape for one in base.evaluation.timings]
    places = {one.id: place for place, one in enumerate(parts)}
    kernels = [one.kernel for one in parts if one.kernel is not None]
    try:
        joined = join_kernels(kernels, shapes, [places[one.id] for one in winners])
    except JoinError as error:
        names = ", ".join(one.id for one in parts)
        return f"the best kernels on each shape ({names}) cannot be joined: {error}"
    others = tuple(one for one in parts if one is not base)
    experiment = _experiment(base, parts, winners, gain)
    return Portfolio(joined.source, base, others, experiment, _report(parts, winners))


def leaders(population: Population) -> list[Member]:
    """For each benchmark shape the member to run there: the fastest overall, or one that is faster for sure.

    Portfolios are left out: their parts are there.
    """
    members = [one for one in population.accepted() if _may_join(one)]
    if not members:
        return []
    base = members[0]
    own = _intervals(base)
    rivals = [one for one in members if len(_intervals(one)) == len(own)]
    chosen = [_leader(index, base, rivals) for index in range(len(own))]
    while len({one.id for one in chosen}) > MOST_VARIANTS:
        chosen = _without_least(chosen, base)
    return chosen


def _leader(index: int, base: Member, rivals: Sequence[Member]) -> Member:
    best = max(rivals, key=lambda one: _intervals(one)[index].value, default=base)
    return best if _intervals(best)[index].low > _intervals(base)[index].value else base


def _without_least(chosen: Sequence[Member], base: Member) -> list[Member]:
    """Give the shapes of the variant that gains least back to the overall best."""

    def gained(member: Member) -> float:
        return sum(
            math.log(_intervals(member)[index].value / _intervals(base)[index].value)
            for index, one in enumerate(chosen)
            if one is member
        )

    variants = {one.id: one for one in chosen if one is not base}
    least = min(variants.values(), key=gained)
    return [base if one is least else one for one in chosen]


def _may_join(member: Member) -> bool:
    made_by = "" if member.experiment is None else strategy_named(member.experiment.strategy)
    return member.kernel is not None and made_by != "portfolio"


def _intervals(member: Member) -> list[Interval]:
    """Speed-up over the starting kernel on each shape; the starting kernel's own is 1."""
    if member.evaluation is None or not member.accepted:
        return []
    return [one.speedup or Interval(1.0, 1.0, 1.0, 0.99) for one in member.evaluation.timings]


def _promise(winners: Sequence[Member]) -> float:
    """The geometric mean of each shape's best speed-up."""
    logs = [math.log(_intervals(one)[index].value) for index, one in enumerate(winners)]
    return math.exp(sum(logs) / len(logs)) if logs else 0.0


def _experiment(base: Member, parts: Sequence[Member], winners: Sequence[Member], gain: float) -> Experiment:
    names = ", ".join(one.id for one in parts)
    return Experiment(
        description=f"Join the kernels that are best on some shape ({names}) into one file, chosen by shape.",
        rubric=tuple(_where(base, index, one) for index, one in enumerate(winners)),
        strategy="portfolio",
        # A winner among many looks better than it is, so half of the promise is a fair lower end.
        uplift_min=math.floor(5 * gain) / 10,
        uplift_max=math.ceil(10 * gain) / 10,
        innovation=0,
    )


def _where(base: Member, index: int, winner: Member) -> str:
    assert base.evaluation is not None
    shape = " ".join(f"{name}={extent}" for name, extent in base.evaluation.timings[index].shape.items())
    return f"Run {winner.id} on {shape} ({_intervals(winner)[index].value:.2f}x there)."


def _report(parts: Sequence[Member], winners: Sequence[Member]) -> str:
    counts = [f"{one.id} on {sum(w is one for w in winners)}" for one in parts]
    return f"Joined by rule, no model was asked. Of {len(winners)} shapes: {', '.join(counts)}."
