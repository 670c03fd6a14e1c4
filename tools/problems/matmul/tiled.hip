/* plan
[constants]
TILE_M = 16         # rows of c that a block computes
TILE_N = 16         # columns of c that a block computes
TILE_K = 16         # depth of the slices of a and b that are staged in LDS
THREAD_M = 1        # rows of c that a thread computes
THREAD_N = 1        # columns of c that a thread computes
INTERLEAVE = 0      # 1: a thread's columns lie a block's width apart; 0: side by side
PAD = 0             # floats added to each row of the staged slices, against bank conflicts
UNROLL = 1          # unrolling of the loop over a slice's depth

[tune]
TILE_M = [16, 32, 64, 128]
TILE_N = [16, 32, 64, 128]
TILE_K = [8, 16, 32, 64]
THREAD_M = [1, 2, 4, 8]
THREAD_N = [1, 2, 4, 8, 16]
INTERLEAVE = [0, 1]
PAD = [0, 4]
UNROLL = [1, 2, 4, 8]
where = [
  "TILE_M % THREAD_M == 0 and TILE_N % THREAD_N == 0",
  "TILE_M * TILE_N <= 1024 * THREAD_M * THREAD_N",
  "4 * TILE_K * (TILE_M + TILE_N + 2 * PAD) <= 65536",
  "TILE_K % UNROLL == 0",
]

[[launch]]
kernel = "matmul"
grid = ["cdiv(n, TILE_N)", "cdiv(m, TILE_M)"]
block = ["TILE_N // THREAD_N", "TILE_M // THREAD_M"]
args = ["a", "b", "c", "m", "n", "k"]
*/
#include <hip/hip_runtime.h>

constexpr int kThreadsX = TILE_N / THREAD_N;
constexpr int kThreadsY = TILE_M / THREAD_M;
constexpr int kThreads = kThreadsX * kThreadsY;

// The column, within the block's tile, of a thread's column number j.
__device__ __forceinline__ int column(int tx, int j) {
  return INTERLEAVE ? tx + j * kThreadsX : tx * THREAD_N + j;
}

__global__ void __launch_bounds__(kThreads) matmul(const float* __restrict__ a, const float* __restrict__ b,
                                                   float* __restrict__ c, int m, int n, int k) {
  __shared__ float slice_a[TILE_K][TILE_M + PAD];  // transposed, so that a thread's rows are neighbours
  __shared__ float slice_b[TILE_K][TILE_N + PAD];

  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int thread = ty * kThreadsX + tx;
  const int row0 = blockIdx.y * TILE_M;
  const int column0 = blockIdx.x * TILE_N;

  float sum[THREAD_M][THREAD_N] = {};

  for (int k0 = 0; k0 < k; k0 += TILE_K) {
    for (int e = thread; e < TILE_M * TILE_K; e += kThreads) {
      const int i = e / TILE_K, p = e % TILE_K;
      const bool inside = row0 + i < m && k0 + p < k;
      slice_a[p][i] = inside ? a[(size_t)(row0 + i) * k + k0 + p] : 0.0f;
    }
    for (int e = thread; e < TILE_N * TILE_K; e += kThreads) {
      const int p = e / TILE_N, j = e % TILE_N;
      const bool inside = k0 + p < k && column0 + j < n;
      slice_b[p][j] = inside ? b[(size_t)(k0 + p) * n + column0 + j] : 0.0f;
    }
    __syncthreads();

#pragma unroll UNROLL
    for (int p = 0; p < TILE_K; ++p) {
      float part_a[THREAD_M], part_b[THREAD_N];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) part_a[i] = slice_a[p][ty * THREAD_M + i];
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) part_b[j] = slice_b[p][column(tx, j)];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i)
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) sum[i][j] += part_a[i] * part_b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
    const int row = row0 + ty * THREAD_M + i;
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const int col = column0 + column(tx, j);
      if (row < m && col < n) c[(size_t)row * n + col] = sum[i][j];
    }
  }
}
