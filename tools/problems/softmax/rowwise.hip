/* plan
[constants]
THREADS = 256       # threads that share a row; a power of two
ROWS = 1            # rows per block
ITEMS = 1           # neighbouring elements a thread takes at a time
KEEP = 0            # 1: write exp() to y while adding up, then scale y; 0: compute it again

[tune]
THREADS = [8, 16, 32, 64, 128, 256, 512, 1024]
ROWS = [1, 2, 4, 8, 16]
ITEMS = [1, 2, 4, 8]
KEEP = [0, 1]
where = ["THREADS * ROWS <= 1024"]

[[launch]]
kernel = "softmax"
grid = "cdiv(rows, ROWS)"
block = ["THREADS", "ROWS"]
args = ["x", "y", "rows", "columns"]
*/
#include <hip/hip_runtime.h>

struct Maximum {
  static __device__ __forceinline__ float join(float a, float b) { return a > b ? a : b; }
};
struct Sum {
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

// Joins the values of the THREADS threads of one row; every thread gets the result.
template <class Operation>
__device__ float reduce_row(float value, float* shared) {
  const int tx = threadIdx.x;
  shared[tx] = value;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (tx < step) shared[tx] = Operation::join(shared[tx], shared[tx + step]);
    __syncthreads();
  }
  const float result = shared[0];
  __syncthreads();
  return result;
}

__global__ void __launch_bounds__(THREADS* ROWS) softmax(const float* __restrict__ x, float* __restrict__ y,
                                                         int rows, int columns) {
  __shared__ float shared[ROWS][THREADS];
  const int ty = threadIdx.y;
  const int first = threadIdx.x * ITEMS;
  const int row = blockIdx.x * ROWS + ty;
  // Threads past the last row work on the last one, so that all reach the barriers; they write nothing.
  const size_t start = (size_t)(row < rows ? row : rows - 1) * columns;
  const float* in = x + start;
  float* out = y + start;
  const bool writes = row < rows;

  float largest = in[0];
  for (int base = first; base < columns; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < columns) largest = Maximum::join(largest, in[base + j]);
  largest = reduce_row<Maximum>(largest, shared[ty]);

  float sum = 0.0f;
  for (int base = first; base < columns; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < columns) {
        const float power = expf(in[base + j] - largest);
        if (KEEP && writes) out[base + j] = power;
        sum += power;
      }
  const float scale = 1.0f / reduce_row<Sum>(sum, shared[ty]);

  if (!writes) return;
  for (int base = first; base < columns; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < columns) {
        const float power = KEEP ? out[base + j] : expf(in[base + j] - largest);
        out[base + j] = power * scale;
      }
}
