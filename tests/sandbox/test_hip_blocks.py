"""Blocks, threads, barriers and LDS of the HIP-on-CPU device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

both_orders = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def test_every_thread_of_every_block_knows_where_it_is(device: Any) -> None:
    source = """
    __global__ void kernel(int* out) {
      int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      dim3 shape = blockDim;
      out[block * (shape.x * shape.y * shape.z) + thread] =
          100000 * blockIdx.z + 10000 * blockIdx.y + 1000 * blockIdx.x +
          100 * threadIdx.z + 10 * threadIdx.y + threadIdx.x;
    }"""
    out = np.zeros((4, 3, 2, 2, 3, 5), np.int32)
    device.run(source, outputs={"out": out}, grid=(2, 3, 4), block=(5, 3, 2))
    bz, by, bx, z, y, x = np.indices(out.shape)
    assert (out == 100000 * bz + 10000 * by + 1000 * bx + 100 * z + 10 * y + x).all()


REVERSE_THROUGH_LDS = """
__global__ void kernel(const float* in, float* out) {
  __shared__ float tile[192];
  tile[threadIdx.x] = in[blockIdx.x * 192 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 192 + threadIdx.x] = tile[191 - threadIdx.x];
}"""


@both_orders
def test_a_barrier_shows_all_threads_what_the_others_wrote(device: Any, reverse: bool) -> None:
    x = np.arange(768, dtype=np.float32)
    y = np.zeros_like(x)
    device.run(
        REVERSE_THROUGH_LDS,
        inputs={"in": x},
        outputs={"out": y},
        grid=(4, 1, 1),
        block=(192, 1, 1),
        reverse=reverse,
    )
    assert (y.reshape(4, 192) == x.reshape(4, 192)[:, ::-1]).all()


def test_a_missing_barrier_shows_when_the_order_of_fibers_is_reversed(device: Any) -> None:
    source = """
    __global__ void kernel(float* out) {
      __shared__ float tile[128];
      tile[threadIdx.x] = threadIdx.x;
      out[threadIdx.x] = threadIdx.x ? tile[threadIdx.x - 1] : 0.0f;
      __syncthreads();
    }"""
    forward, backward = np.zeros(128, np.float32), np.zeros(128, np.float32)
    device.run(source, outputs={"out": forward}, block=(128, 1, 1))
    device.run(source, outputs={"out": backward}, block=(128, 1, 1), reverse=True)
    assert not np.isnan(forward).any()
    assert np.isnan(backward).any()


@both_orders
def test_lds_is_nan_in_every_block_until_it_is_written(device: Any, reverse: bool) -> None:
    source = """
    __global__ void kernel(float* out) {
      __shared__ float left[64];
      extern __shared__ float more[];
      out[blockIdx.x * 128 + threadIdx.x] = left[threadIdx.x];
      out[blockIdx.x * 128 + 64 + threadIdx.x] = more[threadIdx.x];
      __syncthreads();
      left[threadIdx.x] = more[threadIdx.x] = 1.0f;
    }"""
    out = np.zeros(256, np.float32)
    device.run(source, outputs={"out": out}, grid=(2, 1, 1), lds=256, reverse=reverse)
    assert np.isnan(out).all()


@both_orders
def test_threads_that_return_early_do_not_hold_up_a_barrier(device: Any, reverse: bool) -> None:
    source = """
    __global__ void kernel(float* out, int n) {
      __shared__ float sum;
      int i = threadIdx.x;
      if (i >= n) return;
      if (i == 0) sum = 0;
      __syncthreads();
      atomicAdd(&sum, 1.0f);
      __syncthreads();
      out[i] = sum;
    }"""
    out = np.zeros(100, np.float32)
    device.run(source, outputs={"out": out}, scalars=[100], block=(1024, 1, 1), reverse=reverse)
    assert (out == 100).all()


@both_orders
def test_a_barrier_that_only_some_threads_reach_does_not_hang(device: Any, reverse: bool) -> None:
    source = """
    __global__ void kernel(int* out) {
      if (threadIdx.x < 70) __syncthreads();
      out[threadIdx.x] = 1;
    }"""
    out = np.zeros(128, np.int32)
    device.run(source, outputs={"out": out}, block=(128, 1, 1), reverse=reverse)
    assert (out == 1).all()


def test_the_largest_block_and_all_of_the_lds_can_be_used(device: Any) -> None:
    source = """
    __global__ void kernel(int* out) {
      __shared__ int all[16384];
      for (int i = threadIdx.x; i < 16384; i += 1024) all[i] = i;
      __syncthreads();
      for (int i = threadIdx.x; i < 16384; i += 1024) out[i] = all[16383 - i];
    }"""
    out = np.zeros(16384, np.int32)
    device.run(source, outputs={"out": out}, block=(1024, 1, 1))
    assert (out == np.arange(16384)[::-1]).all()


@pytest.mark.parametrize(
    "declaration",
    [
        "extern __shared__ float buffer[];",
        "extern __shared__ __align__(16) float buffer[];",
        "HIP_DYNAMIC_SHARED(float, buffer)",
    ],
)
def test_dynamic_lds_is_found_however_it_is_declared(device: Any, declaration: str) -> None:
    source = f"""
    __global__ void kernel(float* out) {{
      {declaration}
      buffer[threadIdx.x] = threadIdx.x;
      __syncthreads();
      out[threadIdx.x] = buffer[63 - threadIdx.x];
    }}"""
    out = np.zeros(64, np.float32)
    device.run(source, outputs={"out": out}, lds=256)
    assert (out == np.arange(64)[::-1]).all()


def test_lds_can_be_aligned_and_live_in_templates_and_device_functions(device: Any) -> None:
    source = """
    template <int N> __device__ float* scratch() {
      __shared__ alignas(16) float memory[N];
      return memory;
    }
    struct alignas(8) Pair { int a, b; };
    template <int N> __global__ void fill(float* out) {
      __shared__ alignas(Pair) Pair pair;
      float4* four = reinterpret_cast<float4*>(scratch<N>());
      if (threadIdx.x < N / 4) four[threadIdx.x] = make_float4(1, 2, 3, 4) * float(threadIdx.x);
      if (threadIdx.x == 0) pair = {5, 6};
      __syncthreads();
      out[threadIdx.x] = scratch<N>()[threadIdx.x] + pair.a + pair.b;
    }"""
    out = np.zeros(64, np.float32)
    device.run(source, "fill<64>", outputs={"out": out})
    assert (out == np.outer(np.arange(16), [1, 2, 3, 4]).ravel() + 11).all()


def test_the_block_wide_counts_see_every_thread(device: Any) -> None:
    source = """
    __global__ void kernel(int* out) {
      int i = threadIdx.x;
      int many = __syncthreads_count(i % 3 == 0), any = __syncthreads_or(i == 77);
      int all = __syncthreads_and(i < 99);
      out[i] = many * 100 + any * 10 + all;
    }"""
    out = np.zeros(100, np.int32)
    device.run(source, outputs={"out": out}, block=(100, 1, 1))
    assert (out == 34 * 100 + 10).all()


def test_device_tables_and_constants_keep_their_values(device: Any) -> None:
    source = """
    __constant__ float weights[4] = {1.0f, 0.5f, 0.25f, 0.125f};
    __device__ int calls = 7;
    __device__ int zeros[1000];
    __global__ void kernel(float* out) {
      out[threadIdx.x] = weights[threadIdx.x % 4] + calls + zeros[threadIdx.x];
    }"""
    out = np.zeros(64, np.float32)
    device.run(source, outputs={"out": out})
    assert (out == np.tile([1, 0.5, 0.25, 0.125], 16) + 7).all()
