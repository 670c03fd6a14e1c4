// A scan in log2(n) passes, one launch each: the launch depends on the counter of its loop.
#include <hip/hip_runtime.h>
#include <cmath>

namespace scan {
__global__ void add_step(const int* source, int* sums, int n, int step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&sums[i], i >= (1 << step) ? source[i - (1 << step)] : 0);
}
}  // namespace scan

int divide_up(int a, int b) { return (a + b - 1) / b; }

int main() {
  int n = 65536, passes = 16;
  int *source, *sums;
  int* h = new int[n];
  hipMalloc(&source, n * sizeof(int));
  hipMalloc(&sums, n * sizeof(int));
  hipMemcpy(source, h, n * sizeof(int), hipMemcpyHostToDevice);
  for (int pass = 0; pass < passes; ++pass)
    scan::add_step<<<divide_up(n, 128), 128>>>(source, sums, n, pass);
  hipMemcpy(h, sums, n * sizeof(int), hipMemcpyDeviceToHost);
}
