"""The last step of a search: the best kernels on each shape, joined into one candidate for the judge."""

from __future__ import annotations

from . import events as ev
from .benchmarker import finding_on
from .interrupts import LimitHit
from .lab import Lab
from .messages import Choice, Content, Experiment, Hypotheses
from .policies.joining import Portfolio, propose_portfolio
from .population import Member

__all__ = ["PORTFOLIO", "join_best"]

PORTFOLIO = "portfolio"
"""Who speaks in the record when kernels are joined; it is a rule and no agent."""


async def join_best(lab: Lab) -> Member | None:
    """Make, judge and record the portfolio; ``None`` where there is none to make.

    A resumed run makes it once. A limit that is reached here ends the step, not the run.
    """
    found = propose_portfolio(lab.population, lab.config.search)
    if isinstance(found, str):
        lab.note(PORTFOLIO, found)
        return None
    if found is None:
        return None
    member = lab.population.find(found.source)
    if member is None:
        member = _announced(lab, found)
    if member.finding is None and member.experiment is not None:
        try:
            await lab.evaluate(member.id)
        except LimitHit as limit:
            lab.note(PORTFOLIO, f"the portfolio was not judged: {limit}")
            return None
        finding = finding_on(member, found.base, member.slot or 0, member.experiment, None)
        lab.population.conclude(member, finding)
        _say(lab, finding)
    return member


def _announced(lab: Lab, found: Portfolio) -> Member:
    """A new candidate; the plan that is said lists earlier portfolios too, so that slots stay true."""
    earlier = [one.experiment for one in lab.population if one.generation == 0 and one.experiment is not None]
    experiments: tuple[Experiment, ...] = (*earlier, found.experiment)
    chosen = tuple(Choice(experiment=n, criterion="best on each shape") for n in range(len(experiments)))
    _say(lab, Hypotheses(experiments=experiments, chosen=chosen))
    return lab.create_candidate(
        found.source,
        base=found.base,
        reference_id=found.others[0].id,
        slot=len(earlier),
        attempt=1,
        experiment=found.experiment,
        report=found.report,
    )


def _say(lab: Lab, content: Content) -> None:
    lab.recorder.emit(ev.MessageSent, agent=PORTFOLIO, content=content, text=content.text)
