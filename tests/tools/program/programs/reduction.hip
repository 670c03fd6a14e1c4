#include "hip/hip_runtime.h"
#include <iostream>
using namespace std;

#define BLOCK_SIZE 256

// Each block sums its part.
__global__ void reduce_blocks(const double* in, double* partial, size_t n) {
  __shared__ double shared[BLOCK_SIZE];
  double sum = 0;
  for (size_t i = blockIdx.x * (size_t)BLOCK_SIZE + threadIdx.x; i < n; i += (size_t)gridDim.x * BLOCK_SIZE) sum += in[i];
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int s = BLOCK_SIZE / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) shared[threadIdx.x] += shared[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = shared[0];
}

__global__ void reduce_final(const double* partial, double* out, int count) {
  if (threadIdx.x == 0) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += partial[i];
    *out = sum;
  }
}

int main(int argc, char* argv[]) {
  size_t n = argc > 1 ? atol(argv[1]) : 4194304;
  int blocks = min((int)((n + BLOCK_SIZE - 1) / BLOCK_SIZE), 1024);
  double *in, *partial, *out, result;
  double* host = new double[n];
  hipMalloc(&in, sizeof(double) * n);
  hipMalloc(&partial, blocks * sizeof(double));
  hipMalloc(&out, sizeof(double));
  hipMemcpy(in, host, sizeof(double) * n, hipMemcpyHostToDevice);
  reduce_blocks<<<dim3(blocks), dim3(BLOCK_SIZE), 0, 0>>>(in, partial, n);
  reduce_final<<<1, 64>>>(partial, out, blocks);
  hipMemcpy(&result, out, sizeof(double), hipMemcpyDeviceToHost);
  cout << result << endl;
}
