"""Reference for NAME_OF_THE_PROBLEM: what the kernels' outputs are compared with."""

from __future__ import annotations

import numpy as np


def inputs(rng, distribution, n):
    """Fresh inputs by buffer name, drawn from `rng` (numpy.random.Generator) alone."""
    x, y0 = rng.standard_normal((2, n))
    if distribution == "wide":
        x = x * 10.0 ** rng.integers(-8, 9, n)
    return {"x": x.astype(np.float32), "y0": y0.astype(np.float32)}


def reference(x, y0, alpha):
    """The expected outputs by buffer name, as exact as can be: in fp64, and not rounded."""
    return {"y": alpha * x.astype(np.float64) + y0}


def magnitude(x, y0, alpha):
    """Only with [tolerance] magnitude: the size of what is added up to reach each element."""
    return {"y": np.abs(alpha * x.astype(np.float64)) + np.abs(y0)}
