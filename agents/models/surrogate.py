"""A Gaussian process over the configurations of a search space, and how likely one is to fail.

Matérn 5/2 with one length scale a parameter, and a linear part; the scales are found by marginal likelihood
under a broad prior (Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2, 4, 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Scales", "Surrogate", "expected_improvement", "fit_scales"]

Array = NDArray[np.float64]

# Of the logarithms of length scale and noise variance: where the prior has its middle, and how broad it is.
_SCALE, _SCALE_WIDTH = math.log(0.8), 1.0
_NOISE, _NOISE_WIDTH = math.log(0.01), 1.5
_STEP = 0.7
_LINEAR = 0.3
_LEAST, _MOST = -4.0, 3.0


@dataclass(frozen=True, slots=True)
class Scales:
    """Length scales, one a coordinate, and the variance of the noise for values of variance 1."""

    lengths: Array
    noise: float

    @classmethod
    def unfitted(cls, count: int) -> Scales:
        return cls(np.full(count, 0.7), 1e-3)


@final
class Surrogate:
    """Fitted to `values` (of mean about 0 and variance about 1) at the rows of `known`."""

    def __init__(self, known: Array, values: Array, scales: Scales) -> None:
        self._scales = scales
        self._known = known
        covariance = self._covariance(known) + scales.noise * np.eye(len(known))
        factor = np.linalg.cholesky(covariance)
        self._whiten: Array = np.linalg.solve(factor, np.eye(len(known))).astype(np.float64, copy=False)
        white = self._whiten @ values
        self._weights: Array = self._whiten.T @ white
        self.evidence = float(-0.5 * white @ white - np.log(np.diag(factor)).sum())

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at each row."""
        cross = self._covariance(points)
        mean: Array = cross @ self._weights
        explained = ((cross @ self._whiten.T) ** 2).sum(axis=1)
        own = 1.0 + _LINEAR * ((points - 0.5) ** 2).sum(axis=1)
        return mean, np.sqrt(np.maximum(own - explained, 1e-9))

    def success(self, points: Array, failed: Array) -> Array:
        """How likely each row is not to fail, by what happened near it; 1 far from everything."""
        if not len(failed):
            return np.ones(len(points))
        near = 2.0 * points / self._scales.lengths
        bad = _matern(near, 2.0 * failed / self._scales.lengths).sum(axis=1)
        good = _matern(near, 2.0 * self._known / self._scales.lengths).sum(axis=1)
        share: Array = (1.0 + good) / (1.0 + good + bad)
        return share

    def _covariance(self, points: Array) -> Array:
        """Of values at `points` and at what is known; the linear part lets a trend go on where nothing is."""
        near = _matern(points / self._scales.lengths, self._known / self._scales.lengths)
        both: Array = near + _LINEAR * ((points - 0.5) @ (self._known - 0.5).T)
        return both


def fit_scales(known: Array, values: Array, start: Scales) -> Scales:
    """The scales of greatest posterior density, by one descent along each of them in turn."""
    best = np.append(np.log(start.lengths), math.log(start.noise))
    height = _density(known, values, best)
    for axis in range(len(best)):
        for step in (_STEP, -_STEP):
            while True:
                moved = best.copy()
                moved[axis] += step
                if axis < len(best) - 1 and not _LEAST < moved[axis] < _MOST:
                    break
                density = _density(known, values, moved)
                if density <= height + 1e-3:
                    break
                best, height = moved, density
    return _scales(best)


def _scales(logarithms: Array) -> Scales:
    return Scales(np.exp(logarithms[:-1]), float(np.exp(logarithms[-1])))


def _density(known: Array, values: Array, logarithms: Array) -> float:
    try:
        evidence = Surrogate(known, values, _scales(logarithms)).evidence
    except np.linalg.LinAlgError:
        return -math.inf
    lengths = ((logarithms[:-1] - _SCALE) / _SCALE_WIDTH) ** 2
    noise = ((logarithms[-1] - _NOISE) / _NOISE_WIDTH) ** 2
    return evidence - 0.5 * float(lengths.sum() + noise)


def _matern(a: Array, b: Array) -> Array:
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2 * a @ b.T
    distance = np.sqrt(5.0 * np.maximum(squares, 0.0))
    value: Array = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return value


def expected_improvement(mean: Array, spread: Array, best: float) -> Array:
    """Expected gain over `best` under a normal distribution."""
    z = (mean - best) / spread
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    # The normal distribution function by its hyperbolic approximation, good to 0.0005.
    below = 0.5 * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    gain: Array = spread * (z * below + density)
    return gain
