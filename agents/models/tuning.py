"""Searching a kernel's tunables: what to try next, and what to expect of it.

A configuration is a point whose coordinates are the places of its values in their (sorted) lists. What is
tried next, and what is expected of it, is the search's (`search.py`): mean and one standard deviation of its
model are the predicted range. The first experiments of a session are coarse jumps.

Covered: numbers and words as values, rules among them, failed configurations. Not covered: constants whose
best value depends on the shape.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from kernel_scientist.tools.errors import ExpressionError
from kernel_scientist.tools.expressions import Expression

from ..requests import Tuning
from .search import START, Pool, SurrogateSearch
from .space import Array, Point, SearchSpace

__all__ = ["Forecast", "Move", "Proposal", "TuningSearch"]

Value = int | float | str
# So many configurations are looked through for those that keep the rules; of a larger space, samples.
_FILTERED = 2_000
_COARSE_UP_TO = 3
_NEAR = 4
_REACH = 3


@dataclass(frozen=True, slots=True)
class Move:
    """One tunable's change."""

    name: str
    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted uplift over the Base in percent, one standard deviation to either side; distance 0 to 1."""

    low: float
    high: float
    distance: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration worth trying: its changes against the Base, why, and what to expect."""

    moves: tuple[Move, ...]
    why: str
    forecast: Forecast


@final
class TuningSearch:
    """The search on one Base. `tuning` holds what was tried; nothing else is known."""

    def __init__(self, tuning: Tuning, *, seed: int = 0) -> None:
        self._names = tuning.names
        self._values = [_sorted(tuning.values[name]) for name in tuning.names]
        self._constants = dict(tuning.constants)
        self._rules = [Expression.parse(text) for text in tuning.where]
        self._base = self._point(tuple(tuning.constants[name] for name in tuning.names))
        self._known_allowed: dict[Point, bool] = {}
        self._tried = self._measurements(tuning)
        self._space = self._make_space()
        self._search = SurrogateSearch(self._space, seed=seed)

    @property
    def exhausted(self) -> bool:
        """Whether no allowed configuration is left untried."""
        return self._search.propose(self._tried) is None

    def proposals(self, count: int) -> list[Proposal]:
        """Up to `count` untried, allowed, distinct configurations, by as many different criteria."""
        wanted: dict[Point, str] = {}
        if len(self._tried) <= _COARSE_UP_TO:
            for why, places in self._coarse():
                point = self._nearest(places, wanted)
                if point is not None:
                    wanted[point] = why
        own = self._search.propose(self._tried)
        # Its first few are drawn blindly: with three experiments a time there are better uses.
        if own is not None and len(self._tried) >= START:
            wanted.setdefault(own, "what the search itself would try next")
        pool = self._search.pool(self._tried)
        rankings = [(why, iter(order)) for why, order in self._rankings(pool)]
        for why, order in itertools.islice(itertools.cycle(rankings), len(rankings) * count):
            index = next((one for one in order if pool.points[one] not in wanted), None)
            if index is not None:
                wanted[pool.points[index]] = why
        return [self._proposal(point, why) for point, why in itertools.islice(wanted.items(), count)]

    def _rankings(self, pool: Pool) -> list[tuple[str, list[int]]]:
        """Orders to pick from, each with its reason in words."""
        if not pool.points:
            return []
        steps = (np.array(pool.points) != np.array(self._base)).sum(axis=1)
        # What nothing is known of is not penalised: only a chance below what is usual counts.
        usual = np.median(pool.success)
        mean = pool.mean + np.log(np.minimum(1.0, pool.success / usual))
        near = np.where(steps <= _NEAR, mean - 0.3 * pool.spread, -np.inf)
        scores = [
            ("the highest expectation of the fitted model", mean),
            ("high if the model's uncertainty turns out well", mean + 1.5 * pool.spread),
            ("a step near the Base with a good worst case", near),
            ("far from all that was tried, where little is known", self._distances(pool.points) + 0.8 * mean),
            ("expected improvement over the best so far", pool.gain(self._best())),
        ]
        return [(why, np.argsort(-score, kind="stable").tolist()) for why, score in scores]

    def _coarse(self) -> list[tuple[str, list[float]]]:
        """Where to look before anything is known: places in the lists, as what and where."""
        last = [len(values) - 1 for values in self._values]
        return [
            ("a coarse jump to the middle of every list", [0.5 * one for one in last]),
            ("a coarse jump towards the largest value of every list", [float(one) for one in last]),
        ]

    def _nearest(self, places: Sequence[float], taken: Collection[Point]) -> Point | None:
        """The untried allowed point nearest to `places`, each within a few places of it."""
        axes = [_around(len(values), at) for values, at in zip(self._values, places, strict=True)]
        points: list[Point] = list(itertools.product(*axes))
        widths = np.array([max(1, len(values) - 1) for values in self._values])
        away = _norm((np.array(points) - np.array(places)) / widths)
        for index in np.argsort(away, kind="stable"):
            point = points[int(index)]
            if point not in self._tried and point not in taken and self._allowed(point):
                return point
        return None

    def _measurements(self, tuning: Tuning) -> dict[Point, float | None]:
        """Log speed-up of each tried point; the Base is one of them."""
        tried: dict[Point, float | None] = {}
        for one in tuning.tried:
            passed = one.speedup is not None and one.speedup > 0
            speed = math.log(one.speedup) if passed and one.speedup is not None else None
            tried[self._point(one.values)] = speed
        tried.setdefault(self._base, 0.0)
        return tried

    def _point(self, values: Sequence[Value]) -> Point:
        """The places of values in their lists; a value that is not listed takes the nearest place."""
        return tuple(_place(known, value) for known, value in zip(self._values, values, strict=True))

    def _make_space(self) -> SearchSpace:
        sizes = tuple(len(values) for values in self._values)
        ordered = tuple(all(not isinstance(one, str) for one in values) for values in self._values)
        listed = None
        if math.prod(sizes) <= _FILTERED:
            every = itertools.product(*(range(size) for size in sizes))
            listed = [point for point in every if self._allowed(point)]
        return SearchSpace(sizes, ordered, self._allowed, listed)

    def _allowed(self, point: Point) -> bool:
        known = self._known_allowed.get(point)
        if known is None:
            known = self._known_allowed[point] = self._keeps_rules(point)
        return known

    def _keeps_rules(self, point: Point) -> bool:
        """Whether every rule holds; one over a constant that depends on the shape counts as held."""
        chosen = {name: self._values[axis][point[axis]] for axis, name in enumerate(self._names)}
        numbers: dict[str, int | float] = {}
        for name, value in {**self._constants, **chosen}.items():
            try:
                numbers[name] = Expression.parse(value).evaluate(numbers)
            except ExpressionError:
                continue
        try:
            return all(rule.evaluate(numbers) for rule in self._rules if rule.names <= numbers.keys())
        except ExpressionError:
            return False

    def _distances(self, points: Sequence[Point]) -> Array:
        """How far each point is from the nearest that was tried, as a share of the space's diagonal."""
        widths = np.array([max(1, len(values) - 1) for values in self._values], dtype=np.float64)
        rows = np.array(points) / widths
        nearest: Array = np.full(len(points), np.inf)
        for known in self._tried:
            nearest = np.minimum(nearest, _norm(rows - np.array(known) / widths))
        shares: Array = nearest / math.sqrt(len(widths))
        return shares

    def _best(self) -> float:
        return max((speed for speed in self._tried.values() if speed is not None), default=0.0)

    def _proposal(self, point: Point, why: str) -> Proposal:
        mean, spread = self._search.expect(self._tried, point)
        base = self._tried.get(self._base) or 0.0
        low, high = (100.0 * (math.exp(min(mean + side * spread - base, 4.0)) - 1.0) for side in (-1, 1))
        distance = float(self._distances([point])[0])
        return Proposal(self._moves(point), why, Forecast(low, high, min(1.0, distance)))

    def _moves(self, point: Point) -> tuple[Move, ...]:
        return tuple(
            Move(name, self._constants[name], self._values[axis][point[axis]])
            for axis, name in enumerate(self._names)
            if point[axis] != self._base[axis]
        )


def _around(count: int, place: float) -> list[int]:
    """The few whole places of `count` that are nearest to `place`, ascending."""

    def away(one: int) -> float:
        return abs(one - place)

    return sorted(sorted(range(count), key=away)[:_REACH])


def _norm(differences: Array) -> Array:
    length: Array = np.sqrt((differences**2).sum(axis=1))
    return length


def _sorted(values: Sequence[Value]) -> list[Value]:
    numbers = [value for value in values if isinstance(value, (int, float))]
    if len(numbers) == len(values):
        return sorted(numbers)
    return list(values)


def _place(known: Sequence[Value], value: Value) -> int:
    if value in known:
        return known.index(value)
    numbers = [one for one in known if isinstance(one, (int, float))]
    if isinstance(value, (int, float)) and len(numbers) == len(known):
        return min(range(len(numbers)), key=lambda i: abs(numbers[i] - value))
    return 0


def describe_moves(moves: Sequence[Move]) -> str:
    """The moves in words."""
    return ", ".join(f"{move.name} {move.old} -> {move.new}" for move in moves)


def as_constants(moves: Sequence[Move]) -> Mapping[str, Value]:
    return {move.name: move.new for move in moves}
