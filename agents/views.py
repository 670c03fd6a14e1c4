"""Turning members of the population into what a request shows of them."""

from __future__ import annotations

from dataclasses import asdict

from kernel_scientist.tools.problem import Problem

from .digest import summary_of
from .policies.record import StrategyRecord
from .population import Member, Population
from .replies import clean
from .requests import (
    AttemptView,
    KernelView,
    PopulationRow,
    ProblemView,
    ResultView,
    ShapeView,
    StrategyView,
    TriedTuning,
    Tuning,
)

__all__ = [
    "attempt_view",
    "calibration_text",
    "kernel_view",
    "population_rows",
    "problem_view",
    "result_view",
    "strategy_views",
    "tuning_of",
    "uplift",
]

ROWS = 24
"""Members of the population a Selector is shown: the fastest half and the latest half."""

TRIED = 240
"""Configurations a Researcher is shown."""

EVIDENCE = 4_000
"""Characters of the judge's evidence that an agent is shown."""


def problem_view(problem: Problem, *, target: str, device: str) -> ProblemView:
    return ProblemView(
        name=problem.name,
        title=problem.title,
        description=clean(problem.description, 4_000),
        buffers=tuple(f"{one.name}: {one.dtype}, {one.role}" for one in problem.buffers),
        scalars=tuple(f"{one.name}: {one.dtype}" for one in problem.scalars),
        target=target,
        device=device,
    )


def kernel_view(member: Member) -> KernelView:
    evaluation = member.evaluation
    if evaluation is None:
        return KernelView(id=member.id, source=member.source)
    return KernelView(
        id=member.id,
        source=member.source,
        verdict=evaluation.verdict.value,
        speedup=_rounded(member.speedup),
        time_us=_rounded(evaluation.time_us),
        shapes=tuple(
            ShapeView(
                shape=dict(one.shape),
                time_us=round(one.time_us, 3),
                speedup=_rounded(one.speedup.value if one.speedup else None),
                bound_us=_rounded(one.bound_us),
                bound_by=one.bound_by,
            )
            for one in evaluation.timings
        ),
        resources=tuple(asdict(one) for one in evaluation.resources[:4]),
    )


def population_rows(population: Population) -> tuple[PopulationRow, ...]:
    """The fastest and the latest members, fastest first; the starting kernel is always among them."""
    fastest = population.tally.fastest[: ROWS // 2]
    latest = population.tally.judged[-(ROWS - ROWS // 2 - 1) :]
    kept = {one.id: one for one in (*fastest, population.baseline, *latest)}
    ranked = sorted(kept.values(), key=lambda one: -(one.speedup or 0.0))
    return tuple(_row(one) for one in ranked)


def _row(member: Member) -> PopulationRow:
    evaluation = member.evaluation
    plan = member.kernel.plan if member.kernel is not None else None
    return PopulationRow(
        id=member.id,
        parent_id=member.parent_id,
        generation=member.generation,
        verdict=None if evaluation is None else evaluation.verdict.value,
        speedup=_rounded(member.speedup),
        time_us=None if evaluation is None else _rounded(evaluation.time_us),
        shape_times_us=() if evaluation is None else tuple(round(t.time_us, 3) for t in evaluation.timings),
        constants={} if plan is None else {name: plan.constants[name] for name in plan.tune},
        summary=summary_of(member),
    )


def tuning_of(base: Member, population: Population) -> Tuning | None:
    """The Base's ``[tune]`` table and what was tried of it; ``None`` without a table.

    Only members that have the same tunables count: with other ones the code is another.
    """
    if base.kernel is None or not base.kernel.plan.tune:
        return None
    plan = base.kernel.plan
    names = tuple(plan.tune)
    # Filed by sorted names; the Base has an order of its own.
    places = [sorted(names).index(name) for name in names]
    tried = [
        TriedTuning(
            candidate_id=one.id,
            values=tuple(values[place] for place in places),
            verdict="" if one.evaluation is None else one.evaluation.verdict.value,
            speedup=_rounded(one.speedup, 6),
        )
        for one, values in population.tally.tuning(names).shown(TRIED)
    ]
    return Tuning(
        names=names,
        values={name: tuple(values) for name, values in plan.tune.items()},
        where=plan.where,
        constants=dict(plan.constants),
        tried=tuple(tried),
    )


def strategy_views(population: Population) -> tuple[StrategyView, ...]:
    """What came of each strategy so far."""
    return tuple(_strategy_view(one) for one in population.tally.strategies.records)


def _strategy_view(record: StrategyRecord) -> StrategyView:
    held = record.calibration
    return StrategyView(
        strategy=record.strategy,
        tried=record.tried,
        accepted=record.accepted,
        median_uplift=_rounded(record.median_uplift, 1),
        best_uplift=_rounded(record.best_uplift, 1),
        best_id=record.best_id,
        coverage=_rounded(held.coverage if held else None, 2),
        bias=_rounded(held.bias if held else None, 1),
    )


def calibration_text(population: Population) -> str:
    """How well the predictions so far held; empty before the first measurement."""
    held = population.tally.strategies.calibration
    return "" if held is None else f"So far {held}."


def attempt_view(member: Member, *, with_source: bool) -> AttemptView:
    evaluation = member.evaluation
    assert evaluation is not None
    return AttemptView(
        candidate_id=member.id,
        verdict=evaluation.verdict.value,
        evidence=clean(evaluation.message, EVIDENCE),
        source=member.source if with_source else "",
    )


def result_view(member: Member, base: Member, report: str) -> ResultView:
    evaluation = member.evaluation
    assert evaluation is not None
    return ResultView(
        candidate_id=member.id,
        verdict=evaluation.verdict.value,
        accepted=evaluation.accepted,
        speedup=_rounded(member.speedup),
        uplift_percent=_rounded(uplift(member, base), 2),
        time_us=_rounded(evaluation.time_us),
        report=clean(report, EVIDENCE),
    )


def uplift(member: Member, base: Member) -> float | None:
    """Percent over the Base, from both kernels' speedups over the starting kernel."""
    if member.speedup is None or not base.speedup:
        return None
    return (member.speedup / base.speedup - 1.0) * 100.0


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
