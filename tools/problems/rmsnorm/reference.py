"""Reference for rmsnorm: the definition in fp64 on the bf16 inputs."""

import ml_dtypes
import numpy as np


def inputs(rng, distribution, rows, columns):
    shape = (rows, columns)
    match distribution:
        case "uniform":
            x = rng.uniform(-1.0, 1.0, shape)
        case "wide":  # rows from well below epsilon to a million
            x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-6.0, 6.0, (rows, 1))
        case "sparse":
            x = rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        case "constant_rows":
            x = np.repeat(rng.standard_normal((rows, 1)), columns, axis=1)
        case _:
            x = rng.standard_normal(shape)
    weight = rng.uniform(0.5, 1.5, columns) * rng.choice([-1.0, 1.0], columns)
    return {"x": x.astype(ml_dtypes.bfloat16), "weight": weight.astype(ml_dtypes.bfloat16)}


def reference(x, weight, epsilon):
    x = x.astype(np.float64)
    mean_square = np.mean(np.square(x), axis=1, keepdims=True)
    return {"y": x / np.sqrt(mean_square + epsilon) * weight.astype(np.float64)}
