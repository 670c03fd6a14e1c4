"""Reference for transpose."""

import numpy as np


def inputs(rng, distribution, rows, columns):
    shape = (rows, columns)
    match distribution:
        case "uniform":
            x = rng.random(shape)
        case "wide":
            x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-30.0, 30.0, shape)
        case "sparse":
            x = rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        case "constant_rows":
            x = np.repeat(rng.standard_normal((rows, 1)), columns, axis=1)
        case _:
            x = rng.standard_normal(shape)
    return {"x": x.astype(np.float32)}


def reference(x):
    return {"y": x.T}
