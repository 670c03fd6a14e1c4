/* plan
[constants]
THREADS = 256       # threads per block; a power of two
ITEMS = 1           # neighbouring elements a thread takes at a time
SPLITS = 64         # blocks of the first pass, each with a part of x

[tune]
THREADS = [16, 32, 64, 128, 256, 512, 1024]
ITEMS = [1, 2, 4, 8, 16]
SPLITS = [1, 2, 4, 8, 16, 64, 256, 1024]
where = ["THREADS * SPLITS >= 64"]

[[scratch]]
name = "partial"
dtype = "float32"
size = "SPLITS"

[[launch]]
kernel = "sum_part"
grid = "SPLITS"
block = "THREADS"
args = ["x", "partial", "n"]

[[launch]]
kernel = "sum_part"
grid = 1
block = "THREADS"
args = ["partial", "y", "SPLITS"]
*/
#include <hip/hip_runtime.h>

// Block number b of gridDim.x writes the sum of the b-th part of `in` to out[b].
__global__ void __launch_bounds__(THREADS) sum_part(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float shared[THREADS];
  const int tx = threadIdx.x;
  const int splits = gridDim.x;
  const int part = n / splits + (n % splits != 0);
  const long long begin = (long long)blockIdx.x * part;
  const long long end = begin + part < n ? begin + part : n;

  float sums[ITEMS] = {};
  for (long long base = begin + tx * ITEMS; base < end; base += THREADS * ITEMS)
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (base + j < end) sums[j] += in[base + j];
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) sum += sums[j];

  shared[tx] = sum;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (tx < step) shared[tx] += shared[tx + step];
    __syncthreads();
  }
  if (tx == 0) out[blockIdx.x] = shared[0];
}
