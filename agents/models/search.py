"""What configuration to try next: a pure function of a space and of what was tried there.

A few spread-out configurations first. Then a Gaussian process (`surrogate.py`) ranks a pool by expected
improvement times the chance not to fail (`failures.py`; every other time its cube): all of a small space; of
a large one the neighbours of the best, of what is predicted to be best, and a sample of the rest. Every third
proposal is instead the most promising untried neighbour of the best: where a space is rugged, a smooth model
alone stops short of the top.

Covered: ordered values and words, rules, failures, spaces too large to list. Not covered: times that depend
on when they were taken.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import final

import numpy as np

from .failures import FailureModel, fit_failures, value_chances
from .space import Array, Places, Point, SearchSpace, Tried
from .surrogate import Kernel, Scales, Surrogate, expected_improvement, fit_scales

__all__ = ["START", "Point", "Pool", "SearchSpace", "SurrogateSearch", "Tried"]

LISTED = 1_000
"""A space of at most so many configurations is ranked whole."""

START = 5
"""So many configurations are drawn, far from one another, before the model is asked."""

SAMPLE = 400
LOCAL_EVERY = 3
PARENTS = 4
REMEMBERED = 90
"""Configurations that the model is fitted to: the best half, and the latest of the rest."""

_LEAST_PASSED = 3
_DRAWN = 60
_FROM = 3
_GROWTH = 1.5
_HUMP = 0.4
_LEAST_WIDTH = 0.3
_SLOWEST = 0.1
_CAUTION = 3.0
"""Where much fails, the largest gains are expected beyond the limit, and chances there are never quite 0."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Untried points with what is expected of the logarithm of their speed, and of their not failing."""

    points: list[Point]
    mean: Array
    spread: Array
    success: Array

    def gain(self, best: float, *, caution: float = 1.0) -> Array:
        """The improvement over `best` that is expected of each point; `caution` above 1 shuns failures."""
        gain: Array = expected_improvement(self.mean, self.spread, best) * self.success**caution
        return gain

    def first(self, scores: Array) -> Point:
        return self.points[int(np.argmax(scores))]


@final
class SurrogateSearch:
    """Proposes points of `space`. The same history gets the same answer, whatever was asked before."""

    def __init__(self, space: SearchSpace, *, seed: int = 0) -> None:
        self.space = space
        self.kernel = Kernel(
            space.sizes, [o or size <= 2 for o, size in zip(space.ordered, space.sizes, strict=True)]
        )
        self._seed = seed
        self._fits: dict[int, tuple[Scales, Scales]] = {}

    def propose(self, tried: Tried) -> Point | None:
        """The point to try next; ``None`` when every allowed one was tried."""
        passed = sum(speed is not None for speed in tried.values())
        if len(tried) < START or passed < _LEAST_PASSED:
            return self._spread_out(tried)
        model = _Model(self, tried)
        if len(tried) % LOCAL_EVERY == 0:
            step = self._local_step(model, tried)
            if step is not None:
                return step
        pool = self.pool(tried, model=model)
        caution = _CAUTION if len(tried) % 2 else 1.0
        return pool.first(pool.gain(model.highest, caution=caution)) if pool.points else None

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

    def scales(self, tried: Tried) -> tuple[Scales, Scales]:
        """Of speed and of failure; fitted on from where they were whenever the history has grown by half."""
        fits, stage = (self.kernel.unfitted, self.kernel.unfitted), START
        while stage <= len(tried):
            if stage not in self._fits:
                self._fits[stage] = self._fit(dict(itertools.islice(tried.items(), stage)), fits)
            fits, stage = self._fits[stage], math.ceil(stage * _GROWTH)
        return fits

    def _fit(self, early: Tried, start: tuple[Scales, Scales]) -> tuple[Scales, Scales]:
        speed, failure = start
        known = _remembered(early)
        if len(known) >= _LEAST_PASSED:
            places, scaled = self.space.places(known), _Scaled.of(self.space, known)
            speed = fit_scales(self.kernel, places, scaled.values, speed)
        return speed, fit_failures(self.space, self.kernel, early, failure)

    def _draw(self, tried: Tried) -> random.Random:
        return random.Random(f"{self._seed}/{len(tried)}")

    def _spread_out(self, tried: Tried) -> Point | None:
        """The point of a sample that is farthest from all that was tried, if its values have not failed."""
        found = dict.fromkeys(self.space.sample(self._draw(tried), _DRAWN))
        if any(speed is None for speed in tried.values()):
            # Where much fails, one step from what works is the surest way to learn which value it is.
            for point in [point for point, speed in tried.items() if speed is not None]:
                found.update(dict.fromkeys(self.space.neighbours(point)))
        points = [point for point in found if point not in tried] or self._rest(tried)
        if not points:
            return None
        if not tried:
            return points[0]
        rows, known = self.space.coordinates(points), self.space.coordinates(tried)
        apart = ((rows[:, None, :] - known[None, :, :]) ** 2).sum(axis=2).min(axis=1)
        return points[int(np.argmax(np.sqrt(apart) * value_chances(points, tried)))]

    def _local_step(self, model: _Model, tried: Tried) -> Point | None:
        """The untried neighbour of the best point, else of the next best, of which most is expected."""
        for point in model.best[: PARENTS + 2]:
            near = [one for one in self.space.neighbours(point) if one not in tried]
            if near:
                pool = model.pool(near)
                return pool.first(pool.mean + np.log(pool.success))
        return None

    def _worth_a_look(self, model: _Model, tried: Tried) -> list[Point]:
        if self.space.listed is not None and len(self.space.listed) <= LISTED:
            return [point for point in self.space.listed if point not in tried]
        found: dict[Point, None] = {}
        for point in model.best[:PARENTS]:
            found.update(dict.fromkeys(self.space.neighbours(point)))
        found.update(dict.fromkeys(self.space.sample(self._draw(tried), SAMPLE)))
        for best_of in (_mean, model.gain):
            points = [point for point in found if point not in tried]
            for point in _top(model, points, best_of):
                found.update(dict.fromkeys(self.space.neighbours(point)))
        return [point for point in found if point not in tried] or self._rest(tried)

    def _rest(self, tried: Tried) -> list[Point]:
        """Untried points, looked for one after the other where chance found none."""
        listed = self.space.listed
        if listed is not None:
            return [point for point in listed if point not in tried]
        every = itertools.product(*(range(size) for size in self.space.sizes))
        allowed = (point for point in every if point not in tried and self.space.allowed(point))
        return list(itertools.islice(allowed, SAMPLE))


@dataclass(frozen=True, slots=True)
class _Scaled:
    """Log speeds less the hump, of mean 0 and variance 1; the slowest tenth is as slow as the next."""

    values: Array
    middle: float
    width: float

    @classmethod
    def of(cls, space: SearchSpace, known: Tried) -> _Scaled:
        speeds = np.array([speed for speed in known.values() if speed is not None] or [0.0])
        raw = np.maximum(speeds, np.quantile(speeds, _SLOWEST))
        if known:
            raw = raw - _hump(space, space.places(known))
        # No less wide than what may still come: the first few may happen to be alike.
        middle, width = float(raw.mean()), max(_LEAST_WIDTH, float(raw.std()))
        return cls((raw - middle) / width, middle, width)


@dataclass(slots=True)
class _Model:
    """What is known of speed and of failure; built once for each question."""

    search: SurrogateSearch
    tried: Tried
    best: list[Point] = field(init=False)
    """The points that passed, fastest first."""
    highest: float = field(init=False)
    _scaled: _Scaled = field(init=False)
    _speed: Surrogate | None = field(init=False)
    _failures: FailureModel = field(init=False)

    def __post_init__(self) -> None:
        search, known = self.search, _remembered(self.tried)
        ranked = sorted(((v, point) for point, v in self.tried.items() if v is not None), reverse=True)
        self.best = [point for _, point in ranked]
        self.highest = ranked[0][0] if ranked else 0.0
        speed, failure = search.scales(self.tried)
        self._scaled = _Scaled.of(search.space, known)
        places = search.space.places(known)
        self._speed = Surrogate(search.kernel, places, self._scaled.values, speed) if known else None
        self._failures = FailureModel(search.space, search.kernel, self.tried, failure)

    def pool(self, points: list[Point]) -> Pool:
        places, scaled = self.search.space.places(points), self._scaled
        mean, spread = np.zeros(len(points)), np.ones(len(points))
        if self._speed is not None:
            mean, spread = self._speed.predict(places)
        return Pool(
            points,
            mean * scaled.width + scaled.middle + _hump(self.search.space, places),
            spread * scaled.width,
            self._failures.success(places),
        )

    def gain(self, pool: Pool) -> Array:
        return pool.gain(self.highest)


def _mean(pool: Pool) -> Array:
    return pool.mean


def _top(model: _Model, points: list[Point], score: Callable[[Pool], Array]) -> Iterator[Point]:
    """The few points that come first by a score."""
    if points:
        for index in np.argsort(-score(model.pool(points)), kind="stable")[:_FROM]:
            yield points[int(index)]


def _remembered(tried: Tried) -> dict[Point, float]:
    passed = {point: speed for point, speed in tried.items() if speed is not None}
    if len(passed) <= REMEMBERED:
        return passed
    best = sorted(passed, key=lambda point: -passed[point])[: REMEMBERED // 2]
    rest = [point for point in passed if point not in set(best)][-(REMEMBERED - len(best)) :]
    return {point: passed[point] for point in (*best, *rest)}


def _hump(space: SearchSpace, places: Places) -> Array:
    """The mean before any measurement: extremes are rarely best, so the middle stands a little higher."""
    axes = [axis for axis, size in enumerate(space.sizes) if space.ordered[axis] and size > 2]
    if not axes:
        return np.zeros(len(places))
    last = np.array([space.sizes[axis] - 1 for axis in axes])
    away = np.sqrt(((places[:, axes] / last - 0.5) ** 2).mean(axis=1))
    height: Array = _HUMP * (1.0 - 2.0 * away)
    return height
