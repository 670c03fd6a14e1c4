"""A plan's builds: one for each set of values that its constants take over the shapes of the problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..binding import BoundPlan, bind
from ..errors import PlanError
from ..expressions import Expression, Number
from ..kernel import Kernel
from ..policy import policy_violation
from ..problem import Problem

__all__ = ["Portfolio", "Variant", "build_portfolio"]

Shape = Mapping[str, int]

_DRAWS = 256
_CORNERS = 6
_MOST_VARIANTS = 16
_SEED = 20506


@dataclass(frozen=True, slots=True)
class Variant:
    """One build: the constants as macros and as numbers, and which launches of the plan it makes.

    `plan` and `shape` are one instance of it.
    """

    macros: tuple[tuple[str, str], ...]
    values: tuple[Number, ...]
    launches: frozenset[int]
    plan: BoundPlan
    shape: Shape


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The builds, those of listed shapes first; `left_out` counts further ones, of drawn shapes."""

    variants: tuple[Variant, ...]
    left_out: int


def build_portfolio(kernel: Kernel, problem: Problem) -> Portfolio:
    """The builds for the problem's shapes, listed and drawn.

    Raises PlanError where the plan does not fit a listed shape, or the text is not allowed.
    """
    violation = policy_violation(kernel.source)
    if violation is not None:
        raise PlanError(violation, path=kernel.path)
    found: dict[tuple[str, ...], Variant] = {}
    for shape in _listed(problem):
        _add(found, kernel, problem, shape)
    listed = len(found)
    for shape in _drawn(problem):
        try:
            _add(found, kernel, problem, shape)
        except PlanError:
            # A shape that nobody listed may be beyond the plan: it is then refused when the program runs.
            continue
    kept = max(listed, _MOST_VARIANTS)
    return Portfolio(tuple(found.values())[:kept], max(0, len(found) - kept))


def _add(found: dict[tuple[str, ...], Variant], kernel: Kernel, problem: Problem, shape: Shape) -> None:
    plan = bind(kernel, problem, shape)
    key = tuple(value for _, value in plan.constants)
    launches, values = _launched(kernel, problem, shape)
    known = found.get(key)
    if known is None:
        found[key] = Variant(plan.constants, values, launches, plan, shape)
    elif not launches <= known.launches:
        more = known.launches | launches
        found[key] = Variant(known.macros, known.values, more, known.plan, known.shape)


def _launched(kernel: Kernel, problem: Problem, shape: Shape) -> tuple[frozenset[int], tuple[Number, ...]]:
    """Which launches of the plan happen for a shape that binds, and the values of its constants."""
    names: dict[str, Number] = dict(problem.scalar_values(shape))
    for name, value in kernel.plan.constants.items():
        names[name] = Expression.parse(value).evaluate(names)
    launched = frozenset(
        index
        for index, launch in enumerate(kernel.plan.launches)
        if (launch.when is None or launch.when.evaluate(names)) and launch.repeat.evaluate(names)
    )
    return launched, tuple(names[name] for name in kernel.plan.constants)


def _listed(problem: Problem) -> Iterator[Shape]:
    for shapes in problem.shapes.values():
        yield from shapes.tests
        yield from shapes.benchmarks


def _drawn(problem: Problem) -> Iterator[Shape]:
    """Shapes of the domain: its corners, and draws that are the same each time."""
    names = list(problem.domain)
    bounds = list(problem.domain.values())
    if len(names) <= _CORNERS:
        ends = [
            (-(-one.min // one.multiple_of) * one.multiple_of, one.max // one.multiple_of * one.multiple_of)
            for one in bounds
        ]
        for corner in itertools.product(*ends):
            yield dict(zip(names, corner, strict=True))
    rng = np.random.default_rng(_SEED)
    target_class = next(iter(problem.shapes))
    for _ in range(_DRAWS):
        yield problem.random_shape(rng, target_class, 2**36)
