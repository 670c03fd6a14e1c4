#include <hip/hip_runtime.h>
#include <hipblas/hipblas.h>

__constant__ float table[64];

template <int BLOCK> __global__ void lookup(const int* __restrict__ keys, float* __restrict__ found, int n) {
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) found[i] = table[keys[i] & 63];
}

void run(hipblasHandle_t handle, const int* keys, float* found, int n, float* out) {
  lookup<64><<<(n - 1) / 64 + 1, 64>>>(keys, found, n);
  float one = 1.0f;
  hipblasSaxpy(handle, n, &one, found, 1, out, 1);
}

void fill(const float* host) { hipMemcpyToSymbol(HIP_SYMBOL(table), host, sizeof(table)); }
