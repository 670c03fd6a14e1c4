/* plan
[constants]
TILE = 16           # a block moves a square of TILE by TILE elements
EACH = 1            # elements per thread; a block has TILE / EACH rows of threads
PAD = 0             # floats added to each row of the staged tile, against bank conflicts
STAGED = 1          # 1: through LDS, so that reads and writes are both in order; 0: written directly

[tune]
TILE = [8, 16, 32, 64]
EACH = [1, 2, 4, 8, 16]
PAD = [0, 1]
STAGED = [0, 1]
where = ["TILE % EACH == 0", "TILE * TILE <= 1024 * EACH"]

[[launch]]
kernel = "transpose"
grid = ["cdiv(columns, TILE)", "cdiv(rows, TILE)"]
block = ["TILE", "TILE // EACH"]
args = ["x", "y", "rows", "columns"]
*/
#include <hip/hip_runtime.h>

constexpr int kStep = TILE / EACH;

__global__ void __launch_bounds__(TILE* kStep) transpose(const float* __restrict__ x, float* __restrict__ y, int rows,
                                                         int columns) {
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int column0 = blockIdx.x * TILE;
  const int row0 = blockIdx.y * TILE;

  if constexpr (STAGED) {
    __shared__ float tile[TILE][TILE + PAD];
#pragma unroll
    for (int i = ty; i < TILE; i += kStep)
      if (row0 + i < rows && column0 + tx < columns) tile[i][tx] = x[(size_t)(row0 + i) * columns + column0 + tx];
    __syncthreads();
#pragma unroll
    for (int i = ty; i < TILE; i += kStep)
      if (column0 + i < columns && row0 + tx < rows) y[(size_t)(column0 + i) * rows + row0 + tx] = tile[tx][i];
  } else {
#pragma unroll
    for (int i = ty; i < TILE; i += kStep)
      if (row0 + i < rows && column0 + tx < columns)
        y[(size_t)(column0 + tx) * rows + row0 + i] = x[(size_t)(row0 + i) * columns + column0 + tx];
  }
}
