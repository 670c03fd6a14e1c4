/* plan
[constants]
WAVES_M = 2         # waves of a block along m
WAVES_N = 2         # waves of a block along n
TILES_M = 1         # 32 x 32 tiles of c that a wave computes along m
TILES_N = 1         # and along n
TILE_K = 32         # depth of the slices of a and b that are staged in LDS; divides 128
PAD = 0             # bytes added to each row of the staged slices, against bank conflicts

[tune]
WAVES_M = [1, 2, 4]
WAVES_N = [1, 2, 4]
TILES_M = [1, 2, 4]
TILES_N = [1, 2, 4]
TILE_K = [16, 32, 64, 128]
PAD = [0, 8, 16]
where = [
  "WAVES_M * WAVES_N <= 16",
  "TILES_M * TILES_N <= 8",                                          # accumulators: 16 registers each
  "32 * (WAVES_M * TILES_M + WAVES_N * TILES_N) * (TILE_K + PAD) <= 65536",
]

[[launch]]
kernel = "gemm"
grid = ["cdiv(n, 32 * WAVES_N * TILES_N)", "cdiv(m, 32 * WAVES_M * TILES_M)"]
block = "64 * WAVES_M * WAVES_N"
args = ["a", "b", "a_scale", "b_scale", "c", "m", "n", "k"]
*/
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

typedef float floatx16 __attribute__((ext_vector_type(16)));

constexpr int kScaleBlock = 128;
constexpr int kThreads = 64 * WAVES_M * WAVES_N;
constexpr int kRows = 32 * WAVES_M * TILES_M;     // of c per block
constexpr int kColumns = 32 * WAVES_N * TILES_N;  // of c per block
constexpr int kStride = TILE_K + PAD;             // of a staged row, in bytes

// Stages `count` rows of a column-major [rows, k] matrix from row0 and k0 on as [row][k], so that a lane's
// eight neighbours along k are eight neighbouring bytes. Rows past the end become zeros.
template <int count>
__device__ __forceinline__ void stage(const unsigned char* __restrict__ from, unsigned char* to, int rows, int row0,
                                      int k0) {
  // Four neighbouring rows at a time: rows is a multiple of 64, so they are inside or outside together.
  for (int e = threadIdx.x; e < count / 4 * TILE_K; e += kThreads) {
    const int p = e / (count / 4), i = e % (count / 4) * 4;
    unsigned word = 0;
    if (row0 + i < rows) word = *(const unsigned*)(from + (size_t)(k0 + p) * rows + row0 + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) to[(i + j) * kStride + p] = (unsigned char)(word >> (8 * j));
  }
}

__global__ void __launch_bounds__(kThreads)
    gemm(const __hip_fp8_e4m3_fnuz* __restrict__ a, const __hip_fp8_e4m3_fnuz* __restrict__ b,
         const float* __restrict__ a_scale, const float* __restrict__ b_scale, __hip_bfloat16* __restrict__ c, int m,
         int n, int k) {
  __shared__ __attribute__((aligned(16))) unsigned char slice_a[kRows * kStride];
  __shared__ __attribute__((aligned(16))) unsigned char slice_b[kColumns * kStride];

  const int lane = threadIdx.x % 64;
  const int wave = threadIdx.x / 64;
  const int half = lane / 32;
  // First row and column of the wave's tiles, within the block.
  const int wave_row = wave % WAVES_M * TILES_M * 32;
  const int wave_column = wave / WAVES_M * TILES_N * 32;
  const int row0 = blockIdx.y * kRows;
  const int column0 = blockIdx.x * kColumns;
  const int b_blocks = (n + kScaleBlock - 1) / kScaleBlock;

  float sum[TILES_M][TILES_N][16] = {};

  for (int block = 0; block < k / kScaleBlock; ++block) {
    floatx16 part[TILES_M][TILES_N] = {};  // products of one scale block, still unscaled

    for (int k0 = block * kScaleBlock; k0 < (block + 1) * kScaleBlock; k0 += TILE_K) {
      __syncthreads();
      stage<kRows>((const unsigned char*)a, slice_a, m, row0, k0);
      stage<kColumns>((const unsigned char*)b, slice_b, n, column0, k0);
      __syncthreads();

#pragma unroll
      for (int p = 0; p < TILE_K; p += 16) {
        // v_mfma_f32_32x32x16_fp8_fp8: a lane holds row (column) lane % 32 and k = 8 (lane / 32) ... + 7.
        long part_a[TILES_M], part_b[TILES_N];
#pragma unroll
        for (int i = 0; i < TILES_M; ++i)
          part_a[i] = *(const long*)(slice_a + (wave_row + i * 32 + lane % 32) * kStride + p + half * 8);
#pragma unroll
        for (int j = 0; j < TILES_N; ++j)
          part_b[j] = *(const long*)(slice_b + (wave_column + j * 32 + lane % 32) * kStride + p + half * 8);
#pragma unroll
        for (int i = 0; i < TILES_M; ++i)
#pragma unroll
          for (int j = 0; j < TILES_N; ++j)
            part[i][j] = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(part_a[i], part_b[j], part[i][j], 0, 0, 0);
      }
    }

#pragma unroll
    for (int j = 0; j < TILES_N; ++j) {
      const int column = column0 + wave_column + j * 32;
      const float scale_b = column < n ? b_scale[(size_t)block * b_blocks + column / kScaleBlock] : 0.0f;
#pragma unroll
      for (int i = 0; i < TILES_M; ++i)
#pragma unroll
        for (int r = 0; r < 16; ++r) {
          // Element r of the accumulator is row 8 (r / 4) + 4 (lane / 32) + r % 4, column lane % 32.
          const int row = row0 + wave_row + i * 32 + r / 4 * 8 + half * 4 + r % 4;
          const float scale_a = row < m ? a_scale[(size_t)block * m + row] : 0.0f;
          sum[i][j][r] += part[i][j][r] * (scale_a * scale_b);
        }
    }
  }

#pragma unroll
  for (int i = 0; i < TILES_M; ++i)
#pragma unroll
    for (int j = 0; j < TILES_N; ++j)
#pragma unroll
      for (int r = 0; r < 16; ++r) {
        const int row = row0 + wave_row + i * 32 + r / 4 * 8 + half * 4 + r % 4;
        const int column = column0 + wave_column + j * 32 + lane % 32;
        if (row < m && column < n) c[(size_t)row * n + column] = __float2bfloat16(sum[i][j][r]);
      }
}
