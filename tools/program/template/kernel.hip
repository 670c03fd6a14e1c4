/* plan
[constants]                             # macros for the code below, and names for the expressions below
THREADS = 256                           # threads per block

[tune]                                  # optional: values worth trying
THREADS = [64, 128, 256, 512, 1024]

[[launch]]                              # in order; docs/kernel-format.md has the rest: scratch, lds, when, repeat
kernel = "scale_and_add"
grid = "cdiv(n, THREADS)"               # blocks
block = "THREADS"                       # threads per block
args = ["x", "y0", "y", "alpha", "n"]
*/
#include <hip/hip_runtime.h>

__global__ void __launch_bounds__(THREADS)
    scale_and_add(const float* __restrict__ x, const float* __restrict__ y0, float* __restrict__ y, float alpha, int n) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y0[i];
}
