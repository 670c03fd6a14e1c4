"""The matrix instructions of gfx942 against NumPy, in the layouts of AMD's instruction set manual."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

# instruction: (M, N, K, type of A, type of B, type of D, how a lane's operand is declared)
VECTORS = """
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef float f32x2 __attribute__((ext_vector_type(2)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x16 __attribute__((ext_vector_type(16)));
typedef double f64x4 __attribute__((ext_vector_type(4)));
typedef short s16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
"""
FP8, BF8 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz
BF16 = ml_dtypes.bfloat16
INSTRUCTIONS: dict[str, tuple[int, int, int, Any, Any, Any, str]] = {
    "f32_32x32x16_fp8_fp8": (32, 32, 16, FP8, FP8, np.float32, "long"),
    "f32_32x32x16_fp8_bf8": (32, 32, 16, FP8, BF8, np.float32, "long"),
    "f32_32x32x16_bf8_fp8": (32, 32, 16, BF8, FP8, np.float32, "long"),
    "f32_32x32x16_bf8_bf8": (32, 32, 16, BF8, BF8, np.float32, "long"),
    "f32_16x16x32_fp8_fp8": (16, 16, 32, FP8, FP8, np.float32, "long"),
    "f32_16x16x32_fp8_bf8": (16, 16, 32, FP8, BF8, np.float32, "long"),
    "f32_16x16x32_bf8_fp8": (16, 16, 32, BF8, FP8, np.float32, "long"),
    "f32_16x16x32_bf8_bf8": (16, 16, 32, BF8, BF8, np.float32, "long"),
    "f32_32x32x8bf16_1k": (32, 32, 8, BF16, BF16, np.float32, "s16x4"),
    "f32_16x16x16bf16_1k": (16, 16, 16, BF16, BF16, np.float32, "s16x4"),
    "f32_32x32x8f16": (32, 32, 8, np.float16, np.float16, np.float32, "f16x4"),
    "f32_16x16x16f16": (16, 16, 16, np.float16, np.float16, np.float32, "f16x4"),
    "f32_32x32x2f32": (32, 32, 2, np.float32, np.float32, np.float32, "float"),
    "f32_16x16x4f32": (16, 16, 4, np.float32, np.float32, np.float32, "float"),
    "f32_32x32x4_xf32": (32, 32, 4, np.float32, np.float32, np.float32, "f32x2"),
    "f32_16x16x8_xf32": (16, 16, 8, np.float32, np.float32, np.float32, "f32x2"),
    "i32_32x32x16_i8": (32, 32, 16, np.int8, np.int8, np.int32, "long"),
    "i32_16x16x32_i8": (16, 16, 32, np.int8, np.int8, np.int32, "long"),
    "f64_16x16x4f64": (16, 16, 4, np.float64, np.float64, np.float64, "double"),
}
RESULTS = {(np.float32, 32): "f32x16", (np.float32, 16): "f32x4", (np.int32, 32): "i32x16", (np.int32,
16): "i32x4",
           (np.float64, 16): "f64x4"}  # fmt: skip


def case(name: str) -> str:
    """Lane by lane what the manual says where elements of A, B and D live."""
    m, n, k, left, _, result, operand = INSTRUCTIONS[name]
    item = np.dtype(left).itemsize
    row = "4 * i + l / 16" if result is np.float64 else f"4 * (l / {n}) + i % 4 + i / 4 * {256 // n}"
    scalar = {"float32": "float", "int32": "int", "float64": "double"}[np.dtype(result).name]
    per_lane, outputs = k // (64 // m), m * n // 64
    return f"""
      if (which == {list(INSTRUCTIONS).index(name)}) {{
        auto left = *(const {operand}*)(a + (l % {m} * {k} + l / {m} * {per_lane}) * {item});
        auto right = *(const {operand}*)(b + (l % {n} * {k} + l / {n} * {per_lane}) * {item});
        {RESULTS[(result, m)]} sum;
        for (int i = 0; i < {outputs}; i++) sum[i] = ((const {scalar}*)c)[({row}) * {n} + l % {n}];
        sum = __builtin_amdgcn_mfma_{name}(left, right, sum, 0, 0, 0);
        for (int i = 0; i < {outputs}; i++) (({scalar}*)d)[({row}) * {n} + l % {n}] = sum[i];
      }}"""


SOURCE = f"""{VECTORS}
__global__ void kernel(const char* a, const char* b, const char* c, char* d, int which) {{
  int l = threadIdx.x;
  {"".join(map(case, INSTRUCTIONS))}
}}"""


def multiply(device: Any, name: str, a: Any, b: Any, c: Any) -> Any:
    d = np.zeros_like(c).view(np.uint8)
    inputs = {"a": a.view(np.uint8), "b": np.ascontiguousarray(b.T).view(np.uint8), "c": c.view(np.uint8)}
    device.run(SOURCE, inputs=inputs, outputs={"d": d}, scalars=[list(INSTRUCTIONS).index(name)])
    return d.view(c.dtype)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_a_product_of_small_integers_is_exact(device: Any, name: str) -> None:
    m, n, k, left, right, result, _ = INSTRUCTIONS[name]
    rng = np.random.default_rng(5)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    c = rng.integers(-9, 10, (m, n))
    d = multiply(device, name, a.astype(left), b.astype(right), c.astype(result))
    assert (d == a @ b + c).all()


@pytest.mark.parametrize("name", ["f32_32x32x16_fp8_fp8", "f32_16x16x32_bf8_fp8"])
def test_every_fp8_value_has_its_worth(device: Any, name: str) -> None:
    m, n, k, left, right, result, _ = INSTRUCTIONS[name]
    rng = np.random.default_rng(6)
    # One non-zero a row: each element of D is one product, exact in single precision.
    a = np.zeros((m, k), left)
    a[np.arange(m), rng.integers(0, k, m)] = rng.integers(1, 128, m).astype(np.uint8).view(left)
    codes = rng.permutation(np.arange(1024) % 256).astype(np.uint8)[: k * n].reshape(k, n)
    codes[codes == 0x80] = 1
    b = codes.view(right)
    d = multiply(device, name, a, b, np.zeros((m, n), result))
    assert (d == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_the_fp8_nan_makes_its_row_nan(device: Any) -> None:
    a, b = np.ones((32, 16), FP8), np.ones((16, 32), FP8)
    a.view(np.uint8)[3, 7] = 0x80
    d = multiply(device, "f32_32x32x16_fp8_fp8", a, b, np.zeros((32, 32), np.float32))
    assert np.isnan(d[3]).all()
    assert (np.delete(d, 3, axis=0) == 16).all()


@pytest.mark.parametrize(
    "name", ["f32_32x32x8f16", "f32_16x16x16bf16_1k", "f32_32x32x2f32", "f64_16x16x4f64"]
)
def test_real_products_agree_up_to_rounding(device: Any, name: str) -> None:
    m, n, k, left, right, result, _ = INSTRUCTIONS[name]
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((m, k)).astype(left), rng.standard_normal((k, n)).astype(right)
    c = rng.standard_normal((m, n)).astype(result)
    d = multiply(device, name, a, b, c)
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.astype(np.float64) + c, rtol=1e-5, atol=1e-5)


def test_xf32_rounds_its_operands(device: Any) -> None:
    a, b = np.full((32, 4), 1 + 2**-12, np.float32), np.full((4, 32), 1 + 2**-10, np.float32)
    d = multiply(device, "f32_32x32x4_xf32", a, b, np.zeros((32, 32), np.float32))
    assert (d == 4 * (1 + 2**-10)).all()
