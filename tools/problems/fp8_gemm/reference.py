"""Reference for fp8_gemm: scale both sides and multiply, in fp64 on the fp8 inputs."""

import ml_dtypes
import numpy as np

BLOCK = 128  # elements of k, and rows of b, that share a scale
FP8 = ml_dtypes.float8_e4m3fnuz
LARGEST = 240.0  # of FP8


def _elements(rng, distribution, rows, columns):
    shape = (rows, columns)
    match distribution:
        case "uniform":
            values = rng.random(shape)
        case "wide":  # down to the smallest denormal, up to the largest value
            values = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 7, shape)
        case "sparse":
            values = rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        case "constant_rows":
            values = np.repeat(rng.standard_normal((rows, 1)), columns, axis=1)
        case _:
            values = rng.standard_normal(shape)
    return np.clip(values, -LARGEST, LARGEST).astype(FP8)


def _scales(rng, distribution, shape):
    if distribution == "wide":
        return (10.0 ** rng.uniform(-4.0, 4.0, shape)).astype(np.float32)
    return rng.uniform(0.25, 2.0, shape).astype(np.float32)


def inputs(rng, distribution, m, n, k):
    blocks = k // BLOCK
    return {
        "a": _elements(rng, distribution, m, k),
        "b": _elements(rng, distribution, n, k),
        "a_scale": _scales(rng, distribution, (m, blocks)),
        "b_scale": _scales(rng, distribution, (-(-n // BLOCK), blocks)),
    }


def _dequantised(a, b, a_scale, b_scale):
    a_scale = np.repeat(a_scale.astype(np.float64), BLOCK, axis=1)
    b_scale = np.repeat(np.repeat(b_scale.astype(np.float64), BLOCK, axis=0), BLOCK, axis=1)
    return a.astype(np.float64) * a_scale, b.astype(np.float64) * b_scale[: b.shape[0]]


def reference(a, b, a_scale, b_scale):
    a, b = _dequantised(a, b, a_scale, b_scale)
    return {"c": a @ b.T}


def magnitude(a, b, a_scale, b_scale):
    """The sum of the products' sizes, against which rounding is measured."""
    a, b = _dequantised(a, b, a_scale, b_scale)
    return {"c": np.abs(a) @ np.abs(b).T}
