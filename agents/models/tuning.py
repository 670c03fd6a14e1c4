"""Searching a kernel's tunables: what to try next, and what to expect of it.

The model of the search is explicit and small. A configuration is a point whose coordinates are the places
of its values in their (sorted) lists, from 0 to 1. Log speed-ups of the judged points are interpolated by a
Gaussian process (squared-exponential kernel plus a linear one, length scale by marginal likelihood;
Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5), whose mean before
any measurement is a low hump over the middle of the lists. Mean and one standard deviation are the
predicted range.

Covered: numbers and words as values, rules among them, failed configurations. Not covered: constants whose
best value depends on the shape.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from kernel_scientist.tools.errors import ExpressionError
from kernel_scientist.tools.expressions import Expression

from ..requests import Tuning

__all__ = ["Forecast", "Move", "Proposal", "TuningSearch"]

Value = int | float | str
Point = tuple[int, ...]
Array = NDArray[np.float64]

GRID = 60_000
"""Configurations looked at in full; a larger space is sampled to this many."""

_HUMP = 0.6
_NOISE = 0.03
_FAILED_BELOW = 0.5
_SCALES = (0.35, 0.7, 1.4)
_LINEAR = 0.3


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
        self._random = random.Random(f"{seed}/{len(tuning.tried)}")
        self._tried = self._measurements(tuning)
        self._grid = self._make_grid()

    @property
    def exhausted(self) -> bool:
        """Whether no allowed configuration is left untried."""
        return self._first(range(len(self._grid))) is None

    def proposals(self, count: int) -> list[Proposal]:
        """Up to `count` untried, allowed, distinct configurations, by as many different criteria."""
        coordinates = self._coordinates(self._grid)
        mean, spread = self._predict(coordinates)
        distance = self._distances(coordinates)
        rankings = self._rankings(coordinates, mean, spread, distance)
        taken: list[int] = []
        found: list[Proposal] = []
        for why, order in itertools.islice(itertools.cycle(rankings), 2 * len(rankings) + count):
            index = self._first(order, taken)
            if index is None or len(found) == count:
                break
            taken.append(index)
            forecast = self._forecast(mean[index], spread[index], distance[index])
            found.append(Proposal(self._moves(self._grid[index]), why, forecast))
        return found

    def _rankings(
        self, coordinates: Array, mean: Array, spread: Array, distance: Array
    ) -> list[tuple[str, Iterable[int]]]:
        """Orders to pick from, each with its reason in words."""
        middle = _norm(coordinates - 0.5)
        far = _norm(coordinates - 1.0)
        steps = (np.array(self._grid) != np.array(self._base)).sum(axis=1)
        near = np.where(steps <= 4, mean - 0.3 * spread, -np.inf)
        start: list[tuple[str, Array]] = []
        if len(self._tried) <= 3:
            start = [
                ("a coarse jump to the middle of every list", -middle),
                ("a coarse jump towards the largest value of every list", -far),
            ]
        scores = [
            *start,
            ("the highest expectation of the fitted model", mean),
            ("high if the model's uncertainty turns out well", mean + 1.5 * spread),
            ("a step near the Base with a good worst case", near),
            ("far from all that was tried, where little is known", distance + 0.8 * mean),
            ("expected improvement over the best so far", _expected_improvement(mean, spread, self._best())),
        ]
        return [(why, np.argsort(-score, kind="stable").tolist()) for why, score in scores]

    def _first(self, order: Iterable[int], taken: Sequence[int] = ()) -> int | None:
        for index in order:
            point = self._grid[index]
            known = index in taken or point == self._base or point in self._tried
            if not known and self._allowed(point):
                return index
        return None

    def _measurements(self, tuning: Tuning) -> dict[Point, float]:
        """Log speed-up of each tried point; a failed one counts as worse than all that passed."""
        passed: dict[Point, float] = {}
        failed: list[Point] = []
        for one in tuning.tried:
            point = self._point(one.values)
            if one.speedup is not None and one.speedup > 0:
                passed[point] = math.log(one.speedup)
            else:
                failed.append(point)
        floor = min(passed.values(), default=0.0) - _FAILED_BELOW
        return {**dict.fromkeys(failed, floor), **passed}

    def _point(self, values: Sequence[Value]) -> Point:
        """The places of values in their lists; a value that is not listed takes the nearest place."""
        return tuple(_place(known, value) for known, value in zip(self._values, values, strict=True))

    def _make_grid(self) -> list[Point]:
        sizes = [len(values) for values in self._values]
        if math.prod(sizes) <= GRID:
            return list(itertools.product(*(range(size) for size in sizes)))
        points: dict[Point, None] = {}
        for point in [self._base, *self._tried]:
            for axis, size in enumerate(sizes):
                points.update(
                    dict.fromkeys((*point[:axis], step, *point[axis + 1 :]) for step in range(size))
                )
        while len(points) < GRID:
            points[tuple(self._random.randrange(size) for size in sizes)] = None
        return list(points)

    def _allowed(self, point: Point) -> bool:
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

    def _coordinates(self, points: Iterable[Point]) -> Array:
        widths = np.array([max(1, len(values) - 1) for values in self._values], dtype=np.float64)
        places: Array = np.array(list(points), dtype=np.float64).reshape(-1, len(widths)) / widths
        return places

    def _distances(self, coordinates: Array) -> Array:
        tried = self._coordinates(self._tried or [self._base])
        nearest: Array = np.full(len(coordinates), np.inf)
        for row in tried:
            nearest = np.minimum(nearest, _norm(coordinates - row))
        shares: Array = nearest / math.sqrt(len(self._values))
        return shares

    def _best(self) -> float:
        return max(self._tried.values(), default=0.0)

    def _predict(self, coordinates: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the log speed-up at each row."""
        known = self._coordinates(self._tried or {self._base: 0.0})
        values = np.array(list(self._tried.values()) or [0.0])
        rest = values - _hump(known)
        offset = float(rest.mean())
        rest = rest - offset
        height = max(0.4, float(rest.std()))
        fits = [_Process(known, rest, scale * math.sqrt(known.shape[1]), height) for scale in _SCALES]
        process = max(fits, key=lambda one: one.evidence)
        mean, spread = process.predict(coordinates)
        return mean + _hump(coordinates) + offset, spread

    def _forecast(self, mean: float, spread: float, distance: float) -> Forecast:
        base = self._tried.get(self._base, 0.0)
        low, high = (100.0 * (math.exp(min(mean + side * spread - base, 4.0)) - 1.0) for side in (-1, 1))
        return Forecast(low, high, min(1.0, distance))

    def _moves(self, point: Point) -> tuple[Move, ...]:
        return tuple(
            Move(name, self._constants[name], self._values[axis][point[axis]])
            for axis, name in enumerate(self._names)
            if point[axis] != self._base[axis]
        )


class _Process:
    """A Gaussian process fitted to values at known points."""

    def __init__(self, known: Array, values: Array, scale: float, height: float) -> None:
        self._known, self._scale, self._height = known, scale, height
        covariance = self._kernel(known, known) + _NOISE**2 * np.eye(len(known))
        self._factor = np.linalg.cholesky(covariance)
        self._weights = np.linalg.solve(self._factor.T, np.linalg.solve(self._factor, values))
        self.evidence = float(-0.5 * values @ self._weights - np.log(np.diag(self._factor)).sum())

    def _kernel(self, a: Array, b: Array) -> Array:
        squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
        linear = (a - 0.5) @ (b - 0.5).T
        shape: Array = self._height**2 * (np.exp(-0.5 * squares / self._scale**2) + _LINEAR * linear)
        return shape

    def predict(self, points: Array) -> tuple[Array, Array]:
        means: list[Array] = []
        spreads: list[Array] = []
        # In pieces, so that the differences of a large grid and many points stay small in memory.
        for piece in np.array_split(points, max(1, len(points) * len(self._known) // 200_000)):
            cross = self._kernel(piece, self._known)
            means.append(cross @ self._weights)
            solved = np.linalg.solve(self._factor, cross.T)
            own = self._height**2 * (1.0 + _LINEAR * ((piece - 0.5) ** 2).sum(axis=1))
            spreads.append(np.sqrt(np.maximum(own - (solved**2).sum(axis=0), 1e-6)))
        return np.concatenate(means), np.concatenate(spreads)


def _hump(coordinates: Array) -> Array:
    """The mean before any measurement: extremes are rarely best, so the middle stands a little higher."""
    return _HUMP * (1.0 - _norm(coordinates - 0.5) / (0.5 * math.sqrt(coordinates.shape[1])))


def _norm(differences: Array) -> Array:
    length: Array = np.sqrt((differences**2).sum(axis=1))
    return length


def _expected_improvement(mean: Array, spread: Array, best: float) -> Array:
    """Expected gain over `best` under a normal distribution."""
    z = (mean - best) / spread
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    # The normal distribution function by a logistic curve, good to 0.01.
    below = 1.0 / (1.0 + np.exp(np.clip(-1.702 * z, -50, 50)))
    gain: Array = spread * (z * below + density)
    return gain


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
