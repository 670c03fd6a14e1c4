"""Mathematics, integer intrinsics and atomics of HIP device code, against NumPy and the math module."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# name: (reference, smallest argument, largest argument)
ONE: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "acos": (np.arccos, -1, 1), "acosh": (np.arccosh, 1, 50), "asin": (np.arcsin, -1, 1),
    "asinh": (np.arcsinh, -50, 50), "atan": (np.arctan, -50, 50), "atanh": (np.arctanh, -0.99, 0.99),
    "cbrt": (np.cbrt, -50, 50), "ceil": (np.ceil, -9, 9), "cos": (np.cos, -9, 9), "cosh": (np.cosh, -9, 9),
    "erf": (np.vectorize(math.erf), -3, 3), "erfc": (np.vectorize(math.erfc), -3, 3), "exp": (np.exp,
    -20, 20),
    "exp2": (np.exp2, -20, 20), "exp10": (lambda x: 10.0**x, -9, 9), "expm1": (np.expm1, -3, 3),
    "fabs": (np.fabs, -9, 9), "floor": (np.floor, -9, 9), "lgamma": (np.vectorize(math.lgamma), 0.1, 30),
    "log": (np.log, 0.01, 90), "log10": (np.log10, 0.01, 90), "log1p": (np.log1p, -0.9, 9),
    "log2": (np.log2, 0.01, 90),
    "nearbyint": (np.rint, -9, 9), "rint": (np.rint, -9, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 90),
    "sin": (np.sin, -9, 9), "sinh": (np.sinh, -9, 9), "sqrt": (np.sqrt, 0, 90), "tan": (np.tan, -1.5, 1.5),
    "tanh": (np.tanh, -5, 5), "tgamma": (np.vectorize(math.gamma), 0.1, 9), "trunc": (np.trunc, -9, 9),
}  # fmt: skip
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdim": lambda x, y: np.maximum(x - y, 0),
    "fmax": np.maximum,
    "fmin": np.minimum, "fmod": np.fmod, "hypot": np.hypot, "nextafter": np.nextafter, "pow": lambda x,
    y: np.abs(x) ** y,
}  # fmt: skip
COUNT = 256


def test_every_function_of_one_argument_in_both_precisions(device: Any) -> None:
    rng = np.random.default_rng(1)
    x = np.stack([rng.uniform(low, high, COUNT) for _, low, high in ONE.values()]).astype(np.float32)
    single = "".join(f"f[{row} * n + i] = {name}f(x[{row} * n + i]);\n" for row, name in enumerate(ONE))
    overload = "".join(f"g[{row} * n + i] = {name}(x[{row} * n + i]);\n" for row, name in enumerate(ONE))
    double = "".join(
        f"d[{row} * n + i] = {name}(double(x[{row} * n + i]));\n" for row, name in enumerate(ONE)
    )
    source = f"""
    __global__ void kernel(const float* x, float* f, float* g, double* d, int n) {{
      int i = threadIdx.x; {single} {overload} {double}
    }}"""
    f, g, d = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape)
    device.run(
        source, inputs={"x": x}, outputs={"f": f, "g": g, "d": d}, scalars=[COUNT], block=(COUNT, 1, 1)
    )
    assert (f == g).all()
    for row, (name, (reference, _, _)) in enumerate(ONE.items()):
        expected = reference(x[row].astype(np.float64))
        np.testing.assert_allclose(f[row], expected, rtol=5e-6, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(d[row], expected, rtol=1e-13, atol=1e-14, err_msg=name)


def test_every_function_of_two_arguments_in_both_precisions(device: Any) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.uniform(-5, 5, COUNT).astype(np.float32) for _ in "xy")
    single, double = "", ""
    for row, name in enumerate(TWO):
        base = "fabsf(x[i])" if name == "pow" else "x[i]"
        single += f"f[{row} * n + i] = {name}f({base}, y[i]);\n"
        double += f"d[{row} * n + i] = {name}(double({base}), double(y[i]));\n"
    source = f"""
    __global__ void kernel(const float* x, const float* y, float* f, double* d, int n) {{
      int i = threadIdx.x; {single} {double}
    }}"""
    f, d = np.zeros((len(TWO), COUNT), np.float32), np.zeros((len(TWO), COUNT))
    device.run(
        source, inputs={"x": x, "y": y}, outputs={"f": f, "d": d}, scalars=[COUNT], block=(COUNT, 1, 1)
    )
    for row, (name, reference) in enumerate(TWO.items()):
        np.testing.assert_allclose(
            d[row], reference(x.astype(np.float64), y.astype(np.float64)), rtol=1e-13, err_msg=name
        )
        np.testing.assert_allclose(f[row], reference(x, y), rtol=2e-6, atol=1e-7, err_msg=name)


def compute(device: Any, lines: str, expected: list[float]) -> Any:
    """The values that `lines` give to `put` in one thread, as many as expected."""
    source = f"""
    template <class T> __device__ void put(double*& out, T value) {{ *out++ = double(value); }}
    __global__ void kernel(double* out) {{ {lines} }}"""
    out = np.zeros(len(expected))
    device.run(source, outputs={"out": out}, block=(1, 1, 1))
    return out


def puts(expressions: str) -> str:
    return "".join(f"put(out, {expression.strip()});\n" for expression in expressions.split(";"))


def test_the_other_mathematics(device: Any) -> None:
    variables = """
    double whole, s, c; float sf, cf; int e, q; float zero = 0;
    sincos(0.5, &s, &c); sincosf(0.5f, &sf, &cf);"""
    lines = """s; c; sf; cf; modf(2.75, &whole); whole; frexp(10.0, &e); e; ldexp(0.75, 3);
    fma(2.0, 3.0, 4.0);
    lrintf(2.5f); llround(-2.5); ilogb(10.0); remquo(7.0, 2.0, &q); pow(2.0f, 3); sqrt(9); fmaxf(1, 2);
    min(3, 2.5f);
    max(1u, 7u); abs(-3); abs(-2.5f); __expf(1.0f); __powf(2.0f, 0.5f); __fdividef(1.0f, 4.0f);
    __frcp_rn(8.0f);
    __saturatef(1.5f); rhypotf(3, 4); sinpi(0.5); normcdf(0.0); isnan(zero / zero); isinf(1.0f / zero);
    __fsqrt_rn(16.0f);
    __logf(1.0f); signbit(-1.0f); j0(1.0)"""
    expected = [
        math.sin(0.5), math.cos(0.5), math.sin(0.5), math.cos(0.5), 0.75, 2, 0.625, 4, 6, 10,
        2, -3, 3, -1, 8, 3, 2, 2.5,
        7, 3, 2.5, math.e, 2**0.5, 0.25, 0.125,
        1, 0.2, 1, 0.5, 1, 1, 4,
        0, 1, 0.7651976865579666,
    ]  # fmt: skip
    found = compute(device, variables + puts(lines), expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_integer_and_bit_intrinsics(device: Any) -> None:
    lines = """__popc(0xff00ffu); __popcll(~0ull); __clz(1); __clz(0); __clzll(1ll << 40); __ffs(8);
    __ffs(0); __ffsll(1ull << 33);
    __brev(1u); __byte_perm(0x33221100u, 0x77665544u, 0x7250u); __mul24(-3, 5); __mulhi(1 << 30, 8);
    __umulhi(~0u, 2);
    __mul64hi(1ll << 62, 8); __umul64hi(~0ull, 2); __hadd(5, 8); __rhadd(5, 8); __sad(3, 10, 1);
    __dp4a(0x01fe0203, 0x01010101, 10);
    __float_as_int(1.0f); __int_as_float(0x40490fdb); __float2int_rn(2.5f); __float2int_rz(-2.9f);
    __float2int_ru(2.1f);
    __float2int_rd(-2.1f); __float2uint_rz(-5.0f); __float2int_rz(1e20f); __double2ll_rn(3.5);
    __hiloint2double(0x3ff00000, 0);
    __funnelshift_l(0x80000000u, 1u, 1); __bitextract_u32(0xabcd1234u, 8, 8);
    __builtin_amdgcn_sdot4(0x7f010203, 0x01010101, 1, false);
    __builtin_amdgcn_udot4(0xff010203u, 0x01010101u, 1u, false);
    __builtin_amdgcn_perm(0x77665544u, 0x33221100u, 0x0c070500u);
    __builtin_amdgcn_ubfe(0xff0u, 4, 8); __builtin_amdgcn_sbfe(0x80, 4, 4); __ldg(&word)"""
    expected = [
        16, 64, 31, 32, 23, 4, 0, 34,
        0x80000000, 0x77225500, -15, 2, 1,
        2, 1, 6, 7, 8, 14,
        0x3F800000, np.float32(math.pi), 2, -2, 3,
        -3, 0, 2**31 - 1, 4, 1,
        3, 0x12, 134,
        262, 0x00775500,
        0xFF, -8, 0x04030201,
    ]  # fmt: skip
    assert compute(device, "unsigned word = 0x04030201u;" + puts(lines), expected).tolist() == expected


def test_atomics_of_many_threads_and_blocks_lose_nothing(device: Any) -> None:
    source = """
    __global__ void kernel(int* i, float* f, unsigned* u, unsigned long long* l, double* d) {
      int t = blockIdx.x * blockDim.x + threadIdx.x;
      if (t == 0) {
        for (int k = 0; k < 10; k++) i[k] = k == 5 ? -1 : 0;
        f[0] = f[1] = f[2] = d[0] = u[0] = u[1] = l[0] = 0;
      }
      atomicAdd(&i[0], 2); atomicSub(&i[1], 1); atomicMin(&i[2], -t); atomicMax(&i[3], t);
      atomicOr(&i[4], 1 << (t % 20));
      atomicAnd(&i[5], ~(1 << (t % 20))); atomicXor(&i[6], t);
      if (atomicCAS(&i[7], 0, 5) == 0) atomicExch(&i[8], 9);
      __hip_atomic_fetch_add(&i[9], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      atomicAdd(&f[0], 0.5f); atomicMax(&f[1], float(t)); unsafeAtomicAdd(&f[2], 1.0f);
      atomicInc(&u[0], 9u); atomicDec(&u[1], 6u); atomicAdd(&l[0], 1ull << 40); atomicAdd(&d[0], 0.25);
      __threadfence();
    }"""
    outputs = {"i": np.zeros(10, np.int32), "f": np.zeros(3, np.float32), "u": np.zeros(2, np.uint32),
               "l": np.zeros(1, np.uint64), "d": np.zeros(1)}  # fmt: skip
    device.run(source, outputs=outputs, grid=(4, 1, 1), block=(100, 1, 1))
    everything = np.bitwise_xor.reduce(np.arange(400))
    assert outputs["i"].tolist() == [800, -400, -399, 399, 2**20 - 1, ~(2**20 - 1), everything, 5, 9, 400]
    assert outputs["f"].tolist() == [200, 399, 400]
    assert outputs["u"].tolist() == [0, -400 % 7]
    assert outputs["l"][0] == 400 << 40
    assert outputs["d"][0] == 100
