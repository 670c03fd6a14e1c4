"""How likely a configuration is not to fail, by what failed and what passed so far.

Three views, multiplied. A Gaussian process over "passed" and "failed" sees limits that several parameters
share. What happened nearby speaks for itself. And a single value that nothing passed with is to blame
for failures, however good its neighbours are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import final

import numpy as np

from .space import Array, Places, Point, SearchSpace, Tried
from .surrogate import Kernel, Scales, Surrogate, below, fit_scales

__all__ = ["FailureModel", "fit_failures", "value_chances"]

LATEST = 120
"""Of what failed and of what passed, so many count."""

_BLAME = 3.0
_LEAST = 0.01
_DOUBT = 0.1


@final
class FailureModel:
    """Built once for each question; where nothing has failed, everything is expected to pass."""

    def __init__(self, space: SearchSpace, kernel: Kernel, tried: Tried, scales: Scales) -> None:
        self._space = space
        self._blame = _blamed(tried)
        self._failing = any(speed is None for speed in tried.values())
        if self._failing:
            places, labels = _labelled(space, tried)
            self._middle = float(labels.mean())
            self._process = Surrogate(kernel, places, labels - self._middle, scales)

    def success(self, places: Places) -> Array:
        """From nearly 0 to 1, for each row."""
        if not self._failing:
            return np.ones(len(places))
        mean, spread = self._process.predict(places)
        passes = below((mean + self._middle) / np.sqrt(spread**2 + _DOUBT))
        return np.clip(passes, _LEAST, 1.0) * self._by_value(places)

    def _by_value(self, places: Places) -> Array:
        chance = np.ones(len(places))
        for (axis, place), share in self._blame.items():
            chance[places[:, axis] == place] *= share
        return chance


def fit_failures(space: SearchSpace, kernel: Kernel, tried: Tried, start: Scales) -> Scales:
    """Scales for the process of a history; `start` where all passed or all failed."""
    places, labels = _labelled(space, tried)
    if labels.min() == labels.max():
        return start
    return fit_scales(kernel, places, labels - labels.mean(), start)


def value_chances(points: Iterable[Point], tried: Tried) -> Array:
    """How likely each point is not to fail, if it is single values that make configurations fail."""
    blame = _blamed(tried)
    return np.array([math.prod(blame.get(one, 1.0) for one in enumerate(point)) for point in points])


def _blamed(tried: Tried) -> dict[tuple[int, int], float]:
    """The chance of each suspected value, by axis and place.

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
    return {one: 1.0 / (1.0 + weight * share) for one, share in blame.items()}


def _labelled(space: SearchSpace, tried: Tried) -> tuple[Places, Array]:
    passed = [point for point, speed in tried.items() if speed is not None][-LATEST:]
    failed = [point for point, speed in tried.items() if speed is None][-LATEST:]
    labels = np.array([1.0] * len(passed) + [-1.0] * len(failed))
    return space.places([*passed, *failed]), labels
