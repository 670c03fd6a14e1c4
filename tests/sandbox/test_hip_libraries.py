"""hipCUB's block-wide functions, cooperative groups and complex numbers: the same text for CPU and GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_scientist.sandbox.compilation import (
    BufferArgument,
    CodeObject,
    CompileRequest,
    EntryPoint,
    ScalarArgument,
)
from kernel_scientist.sandbox.compiler import open_compiler

BLOCK_WIDE = """#include <hipcub/hipcub.hpp>
__global__ void kernel(const int* x, int* sum, int* largest, int* running, int* before) {
  using Reduce = hipcub::BlockReduce<int, THREADS>;
  using Scan = hipcub::BlockScan<int, THREADS>;
  __shared__ typename Reduce::TempStorage reduce;
  __shared__ typename Scan::TempStorage scan;
  const int i = threadIdx.x, value = x[i];
  const int total = Reduce(reduce).Sum(value);
  __syncthreads();
  const int top = Reduce(reduce).Reduce(value, hipcub::Max());
  int scanned, all;
  Scan(scan).InclusiveSum(value, scanned, all);
  running[i] = scanned;
  __syncthreads();
  Scan(scan).ExclusiveSum(value, scanned);
  before[i] = scanned;
  if (i == 0) sum[0] = total, sum[1] = all, largest[0] = top;
}
"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("threads", [32, 64, 100, 256, 1024])
def test_block_wide_reductions_and_scans(device: Any, threads: int, reverse: bool) -> None:
    x = np.random.default_rng(threads).integers(-1000, 1000, threads, dtype=np.int32)
    found = {name: np.zeros(size, np.int32) for name, size in
             (("sum", 2), ("largest", 1), ("running", threads), ("before", threads))}  # fmt: skip
    source = BLOCK_WIDE.replace("THREADS", str(threads))
    device.run(source, inputs={"x": x}, outputs=found, block=(threads, 1, 1), reverse=reverse)
    assert found["sum"].tolist() == [x.sum(), x.sum()]
    assert found["largest"][0] == x.max()
    np.testing.assert_array_equal(found["running"], x.cumsum())
    np.testing.assert_array_equal(found["before"], x.cumsum() - x)


TILES = """#include <hip/hip_cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void kernel(const float* x, float* sums, int* ranks) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const unsigned i = block.thread_rank();
  sums[i] = cg::reduce(tile, x[i], cg::plus<float>());
  ranks[i] = int(tile.meta_group_rank() * 100 + tile.thread_rank()) * (tile.any(i == 20) ? -1 : 1);
  block.sync();
}
"""


def test_tiles_of_a_wave_reduce_and_vote_among_themselves(device: Any) -> None:
    x = np.arange(96, dtype=np.float32)
    found = {"sums": np.zeros(96, np.float32), "ranks": np.zeros(96, np.int32)}
    device.run(TILES, inputs={"x": x}, outputs=found, block=(96, 1, 1))
    np.testing.assert_array_equal(found["sums"], np.repeat(x.reshape(6, 16).sum(axis=1), 16))
    expected = np.arange(96) // 16 * 100 + np.arange(96) % 16
    np.testing.assert_array_equal(found["ranks"], np.where(np.arange(96) // 16 == 1, -expected, expected))


COMPLEX = """#include <hip/hip_complex.h>
__global__ void kernel(const float2* a, const float2* b, float2* product, float2* ratio, float* size) {
  const int i = threadIdx.x;
  product[i] = hipCmulf(a[i], b[i]);
  ratio[i] = hipCdivf(a[i], b[i]);
  size[i] = hipCabsf(hipCsubf(a[i], hipConjf(b[i])));
}
"""


def test_complex_arithmetic(device: Any) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((64, 2), dtype=np.float32) for _ in range(2))
    found = {
        "product": np.zeros((64, 2), np.float32),
        "ratio": np.zeros((64, 2), np.float32),
        "size": np.zeros(64, np.float32),
    }
    device.run(COMPLEX, inputs={"a": a, "b": b}, outputs=found)
    za, zb = a[:, 0] + 1j * a[:, 1], b[:, 0] + 1j * b[:, 1]
    np.testing.assert_allclose(found["product"] @ [1, 1j], za * zb, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["ratio"] @ [1, 1j], za / zb, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["size"], np.abs(za - zb.conj()), rtol=1e-5)


# What device code in the field uses, all in one kernel.
EVERYTHING = """#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
#include <hip/hip_complex.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hipcub/hipcub.hpp>
__constant__ float table[4] = {1, 2, 3, 4};
template <class T> __device__ __forceinline__ T twice(T x) { return x + x; }
__global__ void __launch_bounds__(256, 2)
kernel(float* __restrict__ p, __half* h, __hip_bfloat16* b, __hip_fp8_e4m3_fnuz* f, int* c, unsigned* u,
       double* d, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  extern __shared__ __align__(16) float tile[];
  __shared__ typename hipcub::BlockReduce<float, 256>::TempStorage storage;
  tile[threadIdx.x] = hipcub::BlockReduce<float, 256>(storage).Sum(p[i]);
  __syncthreads();
  __half2 h2 = __float2half2_rn(p[i]);
  h2 = __hmul2(__hadd2(h2, h2), h2);
  const float2 back = __half22float2(h2);
  h[i] = __hfma(__float2half_rn(p[i]), h[i], __float2half(1.0f));
  b[i] = __float2bfloat16(__bfloat162float(b[i]) * 2.0f) + b[i];
  f[i] = __hip_fp8_e4m3_fnuz(float(f[i]) + 1.0f);
  auto lambda = [=] __device__(float x) { return x * n; };
  float s, k;
  __sincosf(p[i], &s, &k);
  atomicAdd(c, __popc(i) + __popcll(n) + __clz(i) + __clzll(n) + __ffs(i) + int(__byte_perm(i, n, 0x3210)));
  atomicInc(u, 7u), atomicOr(u, 1u), atomicMax(c, 1), atomicMin(c, 3), atomicExch(c, 1), atomicCAS(c, 1, 2);
  atomicAdd(d, 1.0);
  p[i] = tile[0] + back.x + lambda(3) + s + k + __ldg(p + i) + __expf(p[i]) + __powf(p[i], 2.0f);
  p[i] += table[i & 3] + twice(1.0f) + tanhf(s) + erff(k) + rsqrtf(p[i]) + fmaxf(s, k) + __fdividef(s, k);
  p[i] += max(n, 2) + __shfl_xor(s, 1);
  c[i] += __builtin_amdgcn_readfirstlane(i) + int(__match_any(i & 3)) + __shfl_sync(~0ull, i, 2);
  c[i] += __dp4a(i, n, 1) + warpSize;
  d[i] = pow(d[i], 2.0) + exp(d[i]) + __half2float(h[i]) + __any(i) + __all(i);
  d[i] += double(__popcll(__ballot(i > 3)));
  const float4 v = make_float4(1, 2, 3, 4) * 2.0f;
  const uchar4 bytes = make_uchar4(1, 2, 3, 4);
  const int2 pair = make_int2(1, 2);
  p[i] += v.w + bytes.x + pair.y;
}
"""


@pytest.mark.parametrize("arch", ["cpu", "gfx942", "gfx90a", "gfx950"])
def test_what_real_device_code_uses_compiles_for_every_architecture(arch: str) -> None:
    dtypes = ["float32", "float16", "bfloat16", "float8_e4m3fnuz", "int32", "uint32", "float64"]
    buffers = [BufferArgument(dtype, dtype, True) for dtype in dtypes]
    entry = EntryPoint("kernel", (*buffers, ScalarArgument("n", "int32")), 256, dynamic_lds_bytes=1024)
    outcome = open_compiler(arch).compile(CompileRequest(EVERYTHING, (entry,)))
    assert isinstance(outcome, CodeObject), outcome.message
    assert outcome.kernels[0].needs_fibers


FUNCTIONS = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "fabs",
    "floor",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "nearbyint",
    "rint",
    "round",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "rsqrt",
    "rcbrt",
    "sinpi",
    "cospi",
    "normcdf",
    "ilogb",
    "lrint",
    "lround",
]
PAIRS = ["atan2", "copysign", "fdim", "fmax", "fmin", "fmod", "hypot", "nextafter", "pow", "remainder"]


def test_every_mathematical_function_compiles_for_mi300() -> None:
    """Without ROCm's device libraries LLVM lowers only some of them; the rest are our own."""
    calls = [*(f"{name}(y) + {name}f(x) + {name}(x)" for name in FUNCTIONS),
             *(f"{name}(y, y) + {name}f(x, x)" for name in PAIRS),
             "fma(y, y, y) + fmaf(x, x, x) + ldexp(y, n) + scalbnf(x, n)",
             "frexp(y, &n) + modff(x, &x) + modf(y, &y)"]  # fmt: skip
    lines = "\n".join(f"  q[{i}] = {call};" for i, call in enumerate(calls))
    head = "#include <hip/hip_runtime.h>\n__global__ void k(double* q, float x, double y, int n) {\n"
    source = f"{head}{lines}\n}}\n"
    scalars = (ScalarArgument("x", "float32"), ScalarArgument("y", "float64"), ScalarArgument("n", "int32"))
    entry = EntryPoint("k", (BufferArgument("q", "float64", True), *scalars), 64)
    outcome = open_compiler("gfx942").compile(CompileRequest(source, (entry,)))
    assert isinstance(outcome, CodeObject), outcome.message
    assert outcome.kernels[0].resources is not None
