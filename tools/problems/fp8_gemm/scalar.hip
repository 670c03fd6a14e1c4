/* plan
[constants]
TILE_M = 16         # rows of c that a block computes
TILE_N = 16         # columns of c that a block computes
TILE_K = 16         # depth of the slices of a and b that are staged in LDS; divides 128
THREAD_M = 1        # rows of c that a thread computes
THREAD_N = 1        # columns of c that a thread computes
UNROLL = 1          # unrolling of the loop over a slice's depth

[tune]
TILE_M = [16, 32, 64]
TILE_N = [16, 32, 64]
TILE_K = [8, 16, 32, 64, 128]
THREAD_M = [1, 2, 4, 8]
THREAD_N = [1, 2, 4, 8, 16]
UNROLL = [1, 2, 4, 8]
where = [
  "TILE_M % THREAD_M == 0 and TILE_N % THREAD_N == 0",
  "TILE_M * TILE_N <= 1024 * THREAD_M * THREAD_N",
  "4 * TILE_K * (TILE_M + TILE_N) <= 65536",
  "128 % TILE_K == 0 and TILE_K % UNROLL == 0",
]

[[launch]]
kernel = "gemm"
grid = ["n // TILE_N", "m // TILE_M"]
block = ["TILE_N // THREAD_N", "TILE_M // THREAD_M"]
args = ["a", "b", "a_scale", "b_scale", "c", "m", "n", "k"]
*/
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

constexpr int kScaleBlock = 128;
constexpr int kThreadsX = TILE_N / THREAD_N;
constexpr int kThreadsY = TILE_M / THREAD_M;
constexpr int kThreads = kThreadsX * kThreadsY;

// m, n and k are multiples of 64, 64 and 128, so no tile has edges to mind.
__global__ void __launch_bounds__(kThreads)
    gemm(const __hip_fp8_e4m3_fnuz* __restrict__ a, const __hip_fp8_e4m3_fnuz* __restrict__ b,
         const float* __restrict__ a_scale, const float* __restrict__ b_scale, __hip_bfloat16* __restrict__ c, int m,
         int n, int k) {
  __shared__ float slice_a[TILE_K][TILE_M];
  __shared__ float slice_b[TILE_K][TILE_N];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int thread = ty * kThreadsX + tx;
  const int row0 = blockIdx.y * TILE_M;
  const int column0 = blockIdx.x * TILE_N;
  const int b_blocks = (n + kScaleBlock - 1) / kScaleBlock;

  float sum[THREAD_M][THREAD_N] = {};

  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    const int scale_block = k0 / kScaleBlock;
    for (int e = thread; e < TILE_M * TILE_K; e += kThreads) {
      const int p = e / TILE_M, i = e % TILE_M;
      const float value = float(a[(size_t)(k0 + p) * m + row0 + i]);
      slice_a[p][i] = value * a_scale[(size_t)scale_block * m + row0 + i];
    }
    for (int e = thread; e < TILE_N * TILE_K; e += kThreads) {
      const int p = e / TILE_N, j = e % TILE_N;
      const float value = float(b[(size_t)(k0 + p) * n + column0 + j]);
      slice_b[p][j] = value * b_scale[(size_t)scale_block * b_blocks + (column0 + j) / kScaleBlock];
    }
    __syncthreads();

#pragma unroll UNROLL
    for (int p = 0; p < TILE_K; ++p) {
      float part_a[THREAD_M], part_b[THREAD_N];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) part_a[i] = slice_a[p][ty * THREAD_M + i];
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) part_b[j] = slice_b[p][tx * THREAD_N + j];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) sum[i][j] += part_a[i] * part_b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const int row = row0 + ty * THREAD_M + i;
      c[(size_t)row * n + column0 + tx * THREAD_N + j] = __float2bfloat16(sum[i][j]);
    }
}
