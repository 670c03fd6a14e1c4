/* plan
[constants]
THREADS = 256       # threads that share a row; a power of two
ROWS = 1            # rows per block
ITEMS = 1           # neighbouring elements a thread takes at a time

[tune]
THREADS = [8, 16, 32, 64, 128, 256, 512, 1024]
ROWS = [1, 2, 4, 8, 16]
ITEMS = [1, 2, 4, 8, 16]
where = ["THREADS * ROWS <= 1024"]

[[launch]]
kernel = "rmsnorm"
grid = "cdiv(rows, ROWS)"
block = ["THREADS", "ROWS"]
args = ["x", "weight", "y", "epsilon", "rows", "columns"]
*/
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>

__global__ void __launch_bounds__(THREADS* ROWS)
    rmsnorm(const __hip_bfloat16* __restrict__ x, const __hip_bfloat16* __restrict__ weight,
            __hip_bfloat16* __restrict__ y, float epsilon, int rows, int columns) {
  __shared__ float shared[ROWS][THREADS];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int first = tx * ITEMS;
  const int row = blockIdx.x * ROWS + ty;
  // Threads past the last row work on the last one, so that all reach the barriers; they write nothing.
  const size_t start = (size_t)(row < rows ? row : rows - 1) * columns;

  float sum = 0.0f;
  for (int base = first; base < columns; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < columns) {
        const float value = __bfloat162float(x[start + base + j]);
        sum += value * value;
      }

  shared[ty][tx] = sum;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (tx < step) shared[ty][tx] += shared[ty][tx + step];
    __syncthreads();
  }
  const float scale = 1.0f / sqrtf(shared[ty][0] / columns + epsilon);

  if (row >= rows) return;
  for (int base = first; base < columns; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < columns) {
        const float value = __bfloat162float(x[start + base + j]);
        y[start + base + j] = __float2bfloat16(value * scale * __bfloat162float(weight[base + j]));
      }
}
