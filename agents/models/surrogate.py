"""A Gaussian process over the configurations of a search space, for few measurements and many parameters.

Its covariance is a sum of what single parameters do, what pairs of them do, and what all do together
(Duvenaud, Nickisch & Rasmussen, "Additive Gaussian Processes", 2011): an effect of one parameter is learnt
from a handful of points, wherever the others stood. Each parameter has a Matérn 5/2 kernel over the places of
its list, with a length scale of its own. Scales, weights and noise are of greatest posterior density under a
broad prior (Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006, chapter 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from .space import Array, Places

__all__ = ["Kernel", "Scales", "Surrogate", "below", "expected_improvement", "fit_scales"]

# Of the logarithms: where the prior has its middle, and how broad it is.
_LENGTH, _LENGTH_WIDTH = math.log(0.8), 0.8
_WEIGHTS, _WEIGHT_WIDTH = tuple(math.log(one) for one in (0.5, 0.3, 0.3)), 1.0
_NOISE, _NOISE_WIDTH = math.log(0.01), 1.5
_LEAST, _MOST = -7.0, 4.0
_JITTER = 1e-8

_ROUNDS = 12
_STEP, _LEAST_STEP, _MOST_STEP = 0.3, 0.01, 1.0


@dataclass(frozen=True, slots=True)
class Scales:
    """Logarithms: a length scale for each parameter, the weights of single, pairs and all, the noise."""

    logarithms: Array

    @property
    def lengths(self) -> Array:
        found: Array = np.exp(self.logarithms[:-4])
        return found

    @property
    def weights(self) -> tuple[float, float, float]:
        single, pairs, together = np.exp(self.logarithms[-4:-1])
        return float(single), float(pairs), float(together)

    @property
    def noise(self) -> float:
        return math.exp(self.logarithms[-1])


@final
class Kernel:
    """The covariance over places in lists of `sizes` values; words (not `ordered`) are equally far apart."""

    def __init__(self, sizes: Sequence[int], ordered: Sequence[bool]) -> None:
        self._count = len(sizes)
        self._pairs = self._count * (self._count - 1) / 2
        self._apart: list[Array] = [
            np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / max(1, size - 1)
            if in_order
            else 1.0 - np.eye(size)
            for size, in_order in zip(sizes, ordered, strict=True)
        ]
        self._middle = np.array([_LENGTH] * self._count + [*_WEIGHTS, _NOISE])
        self._width = np.array([_LENGTH_WIDTH] * self._count + [_WEIGHT_WIDTH] * 3 + [_NOISE_WIDTH])

    @property
    def unfitted(self) -> Scales:
        """The middle of the prior."""
        return Scales(self._middle)

    def tables(self, scales: Scales) -> list[Array]:
        """For each parameter, the correlation of each place with each."""
        return [_matern(apart / length) for apart, length in zip(self._apart, scales.lengths, strict=True)]

    def own(self, scales: Scales) -> float:
        """The variance of any point before anything is known."""
        single, pairs, together = scales.weights
        return single + (pairs if self._pairs else 0.0) + together

    def between(self, tables: Sequence[Array], scales: Scales, a: Places, b: Places) -> Array:
        """The covariance of each row of `a` with each of `b`, by `tables` of the same scales."""
        parts = [table[a[:, axis][:, None], b[:, axis][None, :]] for axis, table in enumerate(tables)]
        return self._join(scales, *_orders(parts))

    def density(self, logarithms: Array, places: Places, values: Array) -> tuple[float, Array]:
        """The logarithm of the posterior density of the scales, and its gradient."""
        scales = Scales(logarithms)
        parts = [
            table[places[:, axis][:, None], places[:, axis][None, :]]
            for axis, table in enumerate(self.tables(scales))
        ]
        orders = _orders(parts)
        covariance = self._join(scales, *orders) + (scales.noise + _JITTER) * np.eye(len(places))
        precision = np.linalg.inv(covariance)
        weighted = precision @ values
        away = (logarithms - self._middle) / self._width
        height = -0.5 * (values @ weighted + np.linalg.slogdet(covariance)[1] + away @ away)
        slope = self._slope(scales, places, parts, orders, np.outer(weighted, weighted) - precision)
        return float(height), slope - away / self._width

    def _join(self, scales: Scales, single: Array, pairs: Array, together: Array) -> Array:
        first, second, last = scales.weights
        joined: Array = (first / self._count) * single + last * together
        return joined + (second / self._pairs) * pairs if self._pairs else joined

    def _slope(
        self,
        scales: Scales,
        places: Places,
        parts: Sequence[Array],
        orders: tuple[Array, Array, Array],
        pull: Array,
    ) -> Array:
        """The gradient of the marginal likelihood: half the trace of `pull` times each derivative."""
        single, pairs, together = orders
        first, second, last = scales.weights
        share = second / self._pairs if self._pairs else 0.0
        found: list[float] = []
        for axis, (part, length) in enumerate(zip(parts, scales.lengths, strict=True)):
            table = _matern_slope(self._apart[axis] / length)
            own = table[places[:, axis][:, None], places[:, axis][None, :]]
            others = first / self._count + share * (single - part) + last * together / np.maximum(part, 1e-12)
            found.append(float((pull * others * own).sum()))
        found.append(first / self._count * float((pull * single).sum()))
        found.append(share * float((pull * pairs).sum()))
        found.append(last * float((pull * together).sum()))
        found.append(scales.noise * float(np.trace(pull)))
        return 0.5 * np.array(found)


@final
class Surrogate:
    """Fitted to `values` (of mean about 0 and variance about 1) at the rows of `known`."""

    def __init__(self, kernel: Kernel, known: Places, values: Array, scales: Scales) -> None:
        self._kernel, self._known, self._scales = kernel, known, scales
        self._tables = kernel.tables(scales)
        covariance = kernel.between(self._tables, scales, known, known)
        self._precision = np.linalg.inv(covariance + (scales.noise + _JITTER) * np.eye(len(known)))
        self._weighted: Array = self._precision @ values

    def predict(self, places: Places) -> tuple[Array, Array]:
        """Mean and standard deviation at each row."""
        cross = self._kernel.between(self._tables, self._scales, places, self._known)
        mean: Array = cross @ self._weighted
        explained = ((cross @ self._precision) * cross).sum(axis=1)
        return mean, np.sqrt(np.maximum(self._kernel.own(self._scales) - explained, 1e-9))


def fit_scales(kernel: Kernel, places: Places, values: Array, start: Scales) -> Scales:
    """The densest scales of a few steps uphill by the sign of the gradient (Rprop)."""
    here = start.logarithms
    step, last = np.full(len(here), _STEP), np.zeros(len(here))
    best, highest = here, -math.inf
    for _ in range(_ROUNDS):
        height, slope = kernel.density(here, places, values)
        if height > highest:
            best, highest = here, height
        turned = slope * last
        step = np.clip(
            step * np.where(turned > 0, 1.3, np.where(turned < 0, 0.5, 1.0)), _LEAST_STEP, _MOST_STEP
        )
        here, last = np.clip(here + np.sign(slope) * step, _LEAST, _MOST), slope
    return Scales(best)


def _orders(parts: Sequence[Array]) -> tuple[Array, Array, Array]:
    """The correlations' sum over single parameters, over products of pairs, and the product of all."""
    single, squares, together = np.zeros_like(parts[0]), np.zeros_like(parts[0]), np.ones_like(parts[0])
    for part in parts:
        single += part
        squares += part * part
        together *= part
    return single, 0.5 * (single * single - squares), together


def _matern(distance: Array) -> Array:
    far = math.sqrt(5.0) * distance
    value: Array = (1.0 + far + far * far / 3.0) * np.exp(-far)
    return value


def _matern_slope(distance: Array) -> Array:
    """The derivative by the logarithm of the length scale."""
    far = math.sqrt(5.0) * distance
    value: Array = far * far * (1.0 + far) / 3.0 * np.exp(-far)
    return value


def below(z: Array) -> Array:
    """The normal distribution function by its hyperbolic approximation, good to 0.0005."""
    share: Array = 0.5 * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    return share


def expected_improvement(mean: Array, spread: Array, best: float) -> Array:
    """Expected gain over `best` under a normal distribution."""
    z = (mean - best) / spread
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    gain: Array = spread * (z * below(z) + density)
    return gain
