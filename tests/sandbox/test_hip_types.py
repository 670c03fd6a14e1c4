"""Vector types and the 16- and 8-bit floats of HIP, bit by bit against NumPy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.5,
        65504,
        65519.9,
        65520,
        -1e6,
        2.0**-24,
        2.0**-25,
        1.5 * 2.0**-25,
        2.0**-14,
        1e-40,
        np.inf,
        -np.inf,
        np.nan,
    ],
    np.float32,
)


def floats(count: int, spread: float = 30.0) -> Any:
    """Values over many magnitudes, among them ties between short floats, and the special ones."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal(count) * 2.0 ** rng.uniform(-spread, spread, count)
    values = values.astype(np.float32)
    values[::3].view(np.uint32)[...] &= 0xFFFF0000  # exact in bfloat16
    values[1::3].view(np.uint32)[...] |= 0x8000
    values[: len(SPECIAL)] = SPECIAL
    return values


def same(found: Any, expected: Any) -> bool:
    """Equal bit by bit, but any NaN stands for any other."""
    kind = f"u{found.dtype.itemsize}"
    nans = np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    return bool((nans | (found.view(kind) == expected.view(kind))).all())


def mapped(device: Any, bodies: Sequence[str], inputs: dict[str, Any], result: Any) -> list[Any]:
    """`out[i]` as each of `bodies` computes it from element i of the inputs, in one kernel."""
    types = {"float32": "float", "float16": "__half", "bfloat16": "__hip_bfloat16", "uint8": "unsigned char",
             "uint16": "unsigned short", "uint32": "unsigned", "int32": "int",
             "float64": "double"}  # fmt: skip
    count = len(next(iter(inputs.values())))
    out = np.zeros((len(bodies), count), result)
    parameters = [f"const {types[array.dtype.name]}* {name}" for name, array in inputs.items()]
    cases = "".join(f"if (blockIdx.y == {number}) {{ {body} }}\n" for number, body in enumerate(bodies))
    source = f"""
    #include <hip/hip_fp16.h>
    #include <hip/hip_bf16.h>
    #include <hip/hip_fp8.h>
    __global__ void kernel({", ".join(parameters)}, {types[out.dtype.name]}* out, int n) {{
      int i = blockIdx.x * 256 + threadIdx.x;
      out += blockIdx.y * n;
      if (i < n) {{ {cases} }}
    }}"""
    grid = (-(-count // 256), len(bodies), 1)
    device.run(source, inputs=inputs, outputs={"out": out}, scalars=[count], grid=grid, block=(256, 1, 1))
    return list(out)


def test_floats_become_halves_and_back(device: Any) -> None:
    x = floats(3000, 20)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    for found in mapped(
        device, ["out[i] = __float2half(x[i]);", "out[i] = _Float16(x[i]);"], {"x": x}, np.float16
    ):
        assert same(found, half)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    assert same(
        mapped(device, ["out[i] = __half2float(x[i]);"], {"x": every}, np.float32)[0],
        every.astype(np.float32),
    )


def test_directed_conversions_to_half_bound_the_value(device: Any) -> None:
    x = floats(3000, 12)
    x = x[np.abs(x) < 60000]
    bodies = [f"out[i] = __float2half_{mode}(x[i]);" for mode in ("rd", "ru", "rz")]
    down, up, zero = (found.astype(np.float32) for found in mapped(device, bodies, {"x": x}, np.float16))
    assert (down <= x).all() and (x <= up).all() and (np.abs(zero) <= np.abs(x)).all()
    exact = x.astype(np.float16).astype(np.float32) == x
    assert (down[exact] == x[exact]).all() and (up[exact] == x[exact]).all()
    assert (
        np.nextafter(down.astype(np.float16), np.float16(np.inf)).astype(np.float32)[~exact] == up[~exact]
    ).all()


@pytest.mark.parametrize(("kind", "name"), [(np.float16, "__half"), (ml_dtypes.bfloat16, "__hip_bfloat16")])
def test_short_float_arithmetic_rounds_each_operation_once(device: Any, kind: Any, name: str) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(2000).astype(kind) for _ in "ab")
    x, y = a.astype(np.float64), b.astype(np.float64)
    expected = {
        "out[i] = a[i] + b[i];": x + y,
        "out[i] = a[i] - b[i];": x - y,
        "out[i] = a[i] * b[i];": x * y,
        "out[i] = a[i] / b[i];": x / y,
        "out[i] = __hfma(a[i], b[i], a[i]);": x * y + x,
        f"{name} s = a[i]; s += b[i]; out[i] = -s;": -(x + y),
        "out[i] = __hmax(a[i], __habs(b[i]));": np.maximum(x, np.abs(y)),
        "out[i] = (a[i] < b[i]) + 2 * (a[i] == b[i]) + 4 * __hgt(a[i], b[i]);": (x < y)
        + 2 * (x == y)
        + 4 * (x > y),
    }
    for (body, value), found in zip(
        expected.items(), mapped(device, list(expected), {"a": a, "b": b}, kind), strict=True
    ):
        assert same(found, value.astype(kind)), body
    (found,) = mapped(device, ["out[i] = hexp(a[i]);"], {"a": a, "b": b}, kind)
    np.testing.assert_allclose(found.astype(np.float64), np.exp(x), rtol=float(ml_dtypes.finfo(kind).eps))


def test_floats_become_bfloat16_and_back(device: Any) -> None:
    x = floats(3000)
    short = x.astype(ml_dtypes.bfloat16)
    by_the_compiler = "out[i] = __ushort_as_bfloat16(__builtin_bit_cast(unsigned short, __bf16(x[i])));"
    for found in mapped(
        device, ["out[i] = __float2bfloat16(x[i]);", by_the_compiler], {"x": x}, ml_dtypes.bfloat16
    ):
        assert same(found, short)
    assert same(mapped(device, ["out[i] = x[i];"], {"x": short}, np.float32)[0], short.astype(np.float32))
    wide = x.astype(np.float64) * (
        1 + 2.0**-30
    )  # just beyond a half of the last place: rounding twice would fail
    assert same(
        mapped(device, [by_the_compiler], {"x": wide}, ml_dtypes.bfloat16)[0], wide.astype(ml_dtypes.bfloat16)
    )


KINDS = {
    "e4m3_fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2_fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}


def test_every_8_bit_float_is_worth_what_ml_dtypes_says(device: Any) -> None:
    codes = np.arange(256, dtype=np.uint8)
    bodies = [f"__hip_fp8_{kind} v; v.__x = x[i]; out[i] = v;" for kind in KINDS]
    for (kind, dtype), found in zip(
        KINDS.items(), mapped(device, bodies, {"x": codes}, np.float32), strict=True
    ):
        assert same(found, codes.view(dtype).astype(np.float32)), kind


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_round_to_the_nearest_8_bit_float(device: Any) -> None:
    every = [np.arange(256, dtype=np.uint8).view(kind).astype(np.float32) for kind in KINDS.values()]
    x = np.concatenate([floats(4000, 18), *every])
    bodies = [f"out[i] = __hip_fp8_{kind}(x[i]).__x;" for kind in KINDS]
    bodies += [f"out[i] = __hip_cvt_float_to_fp8(x[i], __HIP_NOSAT, __HIP_{kind.upper()});" for kind in KINDS]
    found = mapped(device, bodies, {"x": x}, np.uint8)
    for (kind, dtype), saturated, plain in zip(KINDS.items(), found[:4], found[4:], strict=True):
        largest, finite = float(ml_dtypes.finfo(dtype).max), np.isfinite(x)
        assert same(saturated.view(dtype)[finite], np.clip(x, -largest, largest).astype(dtype)[finite]), kind
        assert np.isnan(saturated.view(dtype)[np.isnan(x)].astype(np.float32)).all(), kind
        assert same(plain.view(dtype), x.astype(dtype)), kind


def test_pairs_of_short_floats_pack_convert_and_compute(device: Any) -> None:
    x = floats(512, 4)
    x[: len(SPECIAL)] = 1
    body = """
    float2 pair = make_float2(x[i], x[i ^ 1]);
    __half2 h = __float22half2_rn(pair);
    h = __hfma2(h, h, __half2half2(__half(1)));
    __hip_bfloat162 b = __float22bfloat162_rn(pair);
    b = b * b;
    out[i] = __low2float(h) + __high2float(h) + __half22float2(h).x +
             __bfloat1622float2(b).y + __low2float(b);"""
    half, brief = x.astype(np.float16).astype(np.float64), x.astype(ml_dtypes.bfloat16).astype(np.float64)
    h = (half * half + 1).astype(np.float16).astype(np.float32)
    b = (brief * brief).astype(ml_dtypes.bfloat16).astype(np.float32)
    other = np.arange(512) ^ 1
    np.testing.assert_allclose(
        mapped(device, [body], {"x": x}, np.float32)[0], 2 * h + h[other] + b[other] + b, rtol=1e-6
    )


def test_vectors_have_hips_sizes_and_element_wise_operators(device: Any) -> None:
    source = """
    static_assert(sizeof(float3) == 12 && sizeof(float4) == 16);
    static_assert(alignof(float4) == 16 && alignof(float2) == 8);
    static_assert(sizeof(uchar4) == 4 && alignof(uchar4) == 4);
    static_assert(sizeof(double2) == 16 && sizeof(longlong2) == 16);
    __global__ void kernel(const float4* x, float4* y, int4* z) {
      int i = threadIdx.x;
      float4 a = x[i], b = make_float4(1, 2, 3, 4), c = {5.0f, 6, 7, 8};
      float4 r = a * 2.0f + b / c - 0.5f;
      r += a;
      r.w = -r.w;
      y[i] = r;
      int4 n = make_int4(i, i + 1, i + 2, i + 3);
      n = (n << 2) | int4(1);
      n %= 7;
      uchar4 bytes = make_uchar4(250, 1, 2, 3) + (unsigned char)10;
      n.w = bytes.x + (make_int2(1, 2) == make_int2(1, 2));
      z[i] = n;
    }"""
    x = np.arange(256, dtype=np.float32).reshape(64, 4)
    y, z = np.zeros_like(x), np.zeros((64, 4), np.int32)
    device.run(source, inputs={"x": x}, outputs={"y": y, "z": z})
    expected = x * 2 + np.array([1, 2, 3, 4], np.float32) / np.array([5, 6, 7, 8], np.float32) - 0.5 + x
    expected[:, 3] *= -1
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    n = ((np.arange(64)[:, None] + np.arange(4)) << 2 | 1) % 7
    n[:, 3] = 4 + 1
    assert (z == n).all()
