"""What configuration to try next: a pure function of a space and of what was tried there.

A few spread-out configurations first. Then a Gaussian process (`surrogate.py`) ranks a pool by expected
improvement times the chance not to fail: all of a small space; of a large one the neighbours of the best, of
what is predicted to be best, and a sample of the rest. Every third proposal is instead the most promising
untried neighbour of the best: where a space is rugged, a smooth model alone stops short of the top.

Covered: ordered values and words, rules, failures, spaces too large to list. Not covered: times that depend
on when they were taken.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from .surrogate import Array, Scales, Surrogate, expected_improvement, fit_scales

__all__ = ["START", "Point", "Pool", "SearchSpace", "SurrogateSearch", "Tried"]

Point = tuple[int, ...]
Tried = Mapping[Point, float | None]
"""The logarithm of the speed of each configuration tried, in order; ``None`` for one that failed."""

LISTED = 1_000
"""A space of at most so many configurations is ranked whole."""

START = 6
"""So many configurations are drawn, far from one another, before the model is asked."""

SAMPLE = 400
LOCAL_EVERY = 3
PARENTS = 4
REMEMBERED = 120
"""Configurations that the model is fitted to: the best half, and the latest of the rest."""

_HUMP = 0.6
_LEAST_WIDTH = 0.4
_BLAME = 3.0


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Places in lists of `sizes` values, of which `allowed` ones count. `listed` are all of them, if known.

    Values that are not `ordered` are as far from one another as the ends of a list.
    """

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]
    allowed: Callable[[Point], bool]
    listed: Sequence[Point] | None = None

    def coordinates(self, points: Iterable[Point]) -> Array:
        """A row for each point: ordered places from 0 to 1, one column for each word."""
        places = np.array(list(points), dtype=np.int64).reshape(-1, len(self.sizes))
        columns: list[Array] = []
        for axis, size in enumerate(self.sizes):
            place = places[:, axis]
            if self.ordered[axis] or size <= 2:
                columns.append((place / max(1, size - 1))[:, None])
            else:
                columns.append((place[:, None] == np.arange(size)) / math.sqrt(2.0))
        return np.concatenate(columns, axis=1)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """The allowed points that differ in one place."""
        for axis, size in enumerate(self.sizes):
            for place in range(size):
                other = (*point[:axis], place, *point[axis + 1 :])
                if place != point[axis] and self.allowed(other):
                    yield other

    def sample(self, draw: random.Random, count: int) -> Iterator[Point]:
        """Allowed points drawn at random, perhaps fewer and perhaps one twice."""
        if self.listed is not None:
            yield from draw.sample(self.listed, min(count, len(self.listed)))
            return
        for _ in range(20 * count):
            point = tuple(draw.randrange(size) for size in self.sizes)
            if self.allowed(point):
                yield point
                count -= 1
                if count == 0:
                    return


@dataclass(frozen=True, slots=True)
class Pool:
    """Untried points with what is expected of the logarithm of their speed, and of their not failing."""

    points: list[Point]
    mean: Array
    spread: Array
    success: Array

    def gain(self, best: float) -> Array:
        """The improvement over `best` that is expected of each point."""
        return expected_improvement(self.mean, self.spread, best) * self.success


@final
class SurrogateSearch:
    """Proposes points of `space`. The same history gets the same answer, whatever was asked before."""

    def __init__(self, space: SearchSpace, *, seed: int = 0) -> None:
        self._space = space
        self._seed = seed
        self._fits: dict[int, Scales] = {}

    def propose(self, tried: Tried) -> Point | None:
        """The point to try next; ``None`` when every allowed one was tried."""
        passed = [point for point, speed in tried.items() if speed is not None]
        if len(tried) < START or len(passed) < 3:
            return self._spread_out(tried)
        model = _Model(self, tried)
        if len(tried) % LOCAL_EVERY == 0:
            step = self._local_step(model, tried)
            if step is not None:
                return step
        pool = self.pool(tried, model=model)
        if not pool.points:
            return None
        return pool.points[int(np.argmax(pool.gain(max(model.speeds))))]

    def pool(self, tried: Tried, *, model: _Model | None = None) -> Pool:
        """The points worth a look, none of them tried; empty when there are none left."""
        model = model or _Model(self, tried)
        points = self._worth_a_look(model, tried)
        if not points:
            nothing = np.zeros(0)
            return Pool([], nothing, nothing, nothing)
        return model.pool(points)

    def expect(self, tried: Tried, point: Point) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm of a point's speed."""
        found = _Model(self, tried).pool([point])
        return float(found.mean[0]), float(found.spread[0])

    def scales(self, tried: Tried) -> Scales:
        """Length scales, fitted whenever the history has grown by two fifths."""
        stage = START
        while stage * 1.4 <= len(tried):
            stage = math.ceil(stage * 1.4)
        if stage not in self._fits:
            early = dict(itertools.islice(tried.items(), stage))
            known, values = _values(self._space, early)
            start = Scales.unfitted(known.shape[1])
            self._fits[stage] = fit_scales(known, values, start) if len(values) > 2 else start
        return self._fits[stage]

    @property
    def space(self) -> SearchSpace:
        return self._space

    def _draw(self, tried: Tried) -> random.Random:
        return random.Random(f"{self._seed}/{len(tried)}")

    def _spread_out(self, tried: Tried) -> Point | None:
        """The point of a sample that is farthest from all that was tried, if its values have not failed."""
        draw = self._draw(tried)
        found = dict.fromkeys(self._space.sample(draw, 60))
        if any(speed is None for speed in tried.values()):
            # Where much fails, one step from what works is the surest way to learn which value it is.
            for point in [point for point, speed in tried.items() if speed is not None]:
                found.update(dict.fromkeys(self._space.neighbours(point)))
        points = [point for point in found if point not in tried] or self._rest(tried)
        if not points:
            return None
        if not tried:
            return points[0]
        rows, known = self._space.coordinates(points), self._space.coordinates(tried)
        apart = ((rows[:, None, :] - known[None, :, :]) ** 2).sum(axis=2).min(axis=1)
        return points[int(np.argmax(np.sqrt(apart) * _chances(points, tried)))]

    def _local_step(self, model: _Model, tried: Tried) -> Point | None:
        """The untried neighbour of the best point, else of the next best, of which most is expected."""
        for point in model.best(PARENTS + 2):
            near = [one for one in self._space.neighbours(point) if one not in tried]
            if near:
                pool = model.pool(near)
                return near[int(np.argmax(pool.mean + np.log(pool.success)))]
        return None

    def _worth_a_look(self, model: _Model, tried: Tried) -> list[Point]:
        space = self._space
        if space.listed is not None and len(space.listed) <= LISTED:
            return [point for point in space.listed if point not in tried]
        found: dict[Point, None] = {}
        for point in model.best(PARENTS):
            found.update(dict.fromkeys(space.neighbours(point)))
        found.update(dict.fromkeys(space.sample(self._draw(tried), SAMPLE)))
        points = [point for point in found if point not in tried]
        if points:
            mean = model.pool(points).mean
            for index in np.argsort(-mean)[:3]:
                found.update(dict.fromkeys(space.neighbours(points[int(index)])))
        return [point for point in found if point not in tried] or self._rest(tried)

    def _rest(self, tried: Tried) -> list[Point]:
        """Untried points, looked for one after the other where chance found none."""
        listed = self._space.listed
        if listed is not None:
            return [point for point in listed if point not in tried]
        every = itertools.product(*(range(size) for size in self._space.sizes))
        allowed = (point for point in every if point not in tried and self._space.allowed(point))
        return list(itertools.islice(allowed, SAMPLE))


@dataclass(slots=True)
class _Model:
    """The surrogate on what was tried; built once for each question."""

    search: SurrogateSearch
    tried: Tried
    speeds: list[float] = field(init=False)
    _surrogate: Surrogate = field(init=False)
    _middle: float = field(init=False)
    _width: float = field(init=False)
    _failed: Array = field(init=False)

    def __post_init__(self) -> None:
        space = self.search.space
        self.speeds = [speed for speed in self.tried.values() if speed is not None] or [0.0]
        kept = _remembered(self.tried)
        known, values = _values(space, kept)
        raw = _raw(space, kept)
        self._middle, self._width = float(raw.mean()), _width(raw)
        self._surrogate = Surrogate(known, values, self.search.scales(self.tried))
        failed = [point for point, speed in self.tried.items() if speed is None]
        self._failed = space.coordinates(failed) if failed else np.zeros((0, known.shape[1]))

    def pool(self, points: list[Point]) -> Pool:
        rows = self.search.space.coordinates(points)
        mean, spread = self._surrogate.predict(rows)
        return Pool(
            points,
            mean * self._width + self._middle + _hump(rows),
            spread * self._width,
            self._surrogate.success(rows, self._failed) * _chances(points, self.tried),
        )

    def best(self, count: int) -> list[Point]:
        """The fastest points, fastest first."""
        passed = [(speed, point) for point, speed in self.tried.items() if speed is not None]
        return [point for _, point in sorted(passed, reverse=True)[:count]]


def _chances(points: Sequence[Point], tried: Tried) -> Array:
    """How likely each point is not to fail, if it is single values that make configurations fail.

    A value that some configuration passed with is cleared; a failure's blame is shared by its other values,
    and weighs as much as failures are common.
    """
    cleared = {one for point, speed in tried.items() if speed is not None for one in enumerate(point)}
    blame = Counter[tuple[int, int]]()
    for point, speed in tried.items():
        suspects = [one for one in enumerate(point) if one not in cleared]
        if speed is None:
            blame.update(dict.fromkeys(suspects, 1.0 / max(1, len(suspects))))
    weight = _BLAME * sum(speed is None for speed in tried.values()) / max(1, len(tried))
    chance = {one: 1.0 / (1.0 + weight * share) for one, share in blame.items()}
    return np.array([math.prod(chance.get(one, 1.0) for one in enumerate(point)) for point in points])


def _remembered(tried: Tried) -> Tried:
    passed = {point: speed for point, speed in tried.items() if speed is not None}
    if len(passed) <= REMEMBERED:
        return passed
    best = sorted(passed, key=lambda point: -passed[point])[: REMEMBERED // 2]
    rest = [point for point in passed if point not in set(best)][-(REMEMBERED - len(best)) :]
    return {point: passed[point] for point in (*best, *rest)}


def _raw(space: SearchSpace, tried: Tried) -> Array:
    """Log speeds less the hump; the slowest tenth counts as no slower than the rest."""
    points = [point for point, speed in tried.items() if speed is not None]
    if not points:
        return np.zeros(1)
    values = np.array([tried[point] for point in points], dtype=np.float64)
    raw: Array = np.maximum(values, np.quantile(values, 0.1)) - _hump(space.coordinates(points))
    return raw


def _values(space: SearchSpace, tried: Tried) -> tuple[Array, Array]:
    """Coordinates of the points that passed, and their values with mean 0 and variance 1."""
    points = [point for point, speed in tried.items() if speed is not None]
    raw = _raw(space, tried)
    if not points:
        return space.coordinates([tuple(0 for _ in space.sizes)]), raw
    return space.coordinates(points), (raw - raw.mean()) / _width(raw)


def _width(raw: Array) -> float:
    """The standard deviation, and no less than what may still come: the first few may happen to be alike."""
    return max(_LEAST_WIDTH, float(raw.std()))


def _hump(rows: Array) -> Array:
    """The mean before any measurement: extremes are rarely best, so the middle stands a little higher."""
    away = np.sqrt(((rows - 0.5) ** 2).sum(axis=1))
    height: Array = _HUMP * (1.0 - away / (0.5 * math.sqrt(rows.shape[1])))
    return height
