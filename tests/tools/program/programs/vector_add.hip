#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                  \
  do {                                                               \
    hipError_t e = (call);                                           \
    if (e != hipSuccess) { printf("%s\n", hipGetErrorString(e)); exit(1); } \
  } while (0)

__global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

void vector_add_cpu(const float* a, const float* b, float* c, int n) {
  for (int i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

int main() {
  const int n = 1 << 20;
  const int threads = 256;
  size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n);
  float *d_a, *d_b, *d_c;
  CHECK(hipMalloc(&d_a, bytes));
  CHECK(hipMalloc(&d_b, bytes));
  CHECK(hipMalloc((void**)&d_c, bytes));
  CHECK(hipMemcpy(d_a, a.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(d_b, b.data(), bytes, hipMemcpyHostToDevice));
  int blocks = (n + threads - 1) / threads;
  vector_add<<<blocks, threads>>>(d_a, d_b, d_c, n);
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(c.data(), d_c, bytes, hipMemcpyDeviceToHost));
  hipFree(d_a);
  return 0;
}
