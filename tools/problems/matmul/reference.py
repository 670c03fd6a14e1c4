"""Reference for matmul: the product in fp64."""

from __future__ import annotations

import numpy as np


def _draw(rng, distribution, rows, columns):
    shape = (rows, columns)
    match distribution:
        case "uniform":
            values = rng.random(shape)
        case "wide":
            values = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 9, shape)
        case "sparse":
            values = rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        case "constant_rows":
            values = np.repeat(rng.standard_normal((rows, 1)), columns, axis=1)
        case _:
            values = rng.standard_normal(shape)
    return values.astype(np.float32)


def inputs(rng, distribution, m, n, k):
    return {"a": _draw(rng, distribution, m, k), "b": _draw(rng, distribution, k, n)}


def reference(a, b):
    return {"c": a.astype(np.float64) @ b.astype(np.float64)}


def magnitude(a, b):
    """The sum of the products' sizes, against which rounding is measured."""
    return {"c": np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)}
