"""Reference for reduce_sum: the sum in fp64."""

import numpy as np


def inputs(rng, distribution, n):
    match distribution:
        case "uniform":
            x = rng.random(n)
        case "wide":
            x = rng.standard_normal(n) * 10.0 ** rng.uniform(-8.0, 8.0, n)
        case "sparse":  # a few elements carry the sum, the first and the last among them
            x = np.zeros(n)
            places = np.concatenate(([0, n - 1], rng.integers(0, n, 14)))
            x[places] = rng.uniform(1.0, 2.0, places.size)
        case "integers":
            x = rng.integers(1, 4, n)
        case _:
            x = rng.standard_normal(n)
    return {"x": x.astype(np.float32)}


def reference(x):
    return {"y": np.array([x.sum(dtype=np.float64)])}


def magnitude(x):
    """The sum of |x|, or 0 where every partial sum is an integer that fp32 holds exactly."""
    size = np.abs(x).sum(dtype=np.float64)
    exact = size < 2**24 and bool(np.all(x == np.rint(x)))
    return {"y": np.array([0.0 if exact else size])}
