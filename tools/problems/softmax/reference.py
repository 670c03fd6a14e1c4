"""Reference for softmax: the definition in fp64."""

import numpy as np


def inputs(rng, distribution, rows, columns):
    shape = (rows, columns)
    match distribution:
        case "uniform":
            x = rng.uniform(-1.0, 1.0, shape)
        case "wide":  # rows from almost flat to one single value that takes all
            x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3.0, 3.0, (rows, 1))
        case "sparse":
            x = 20.0 * rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        case "constant_rows":
            x = np.repeat(50.0 * rng.standard_normal((rows, 1)), columns, axis=1)
        case _:
            x = 3.0 * rng.standard_normal(shape)
    return {"x": x.astype(np.float32)}


def reference(x):
    x = x.astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": powers / powers.sum(axis=1, keepdims=True)}
