#include <hip/hip_runtime.h>
#define NUM_BINS 256
typedef unsigned char byte_t;

__global__ void histogram(const unsigned char* data, unsigned int* bins, int n) {
  __shared__ unsigned int local[NUM_BINS];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main(int argc, char** argv) {
  int n = atoi(argv[1]);
  unsigned char* d_data;
  unsigned int* d_bins;
  unsigned int bins[NUM_BINS];
  unsigned char* data = new unsigned char[n];
  hipMalloc(&d_data, n);
  hipMalloc(&d_bins, NUM_BINS * sizeof(unsigned int));
  hipMemcpy(d_data, data, n, hipMemcpyHostToDevice);
  hipMemset(d_bins, 0, NUM_BINS * sizeof(unsigned int));
  histogram<<<240, NUM_BINS>>>(d_data, d_bins, n);
  hipMemcpy(bins, d_bins, NUM_BINS * sizeof(unsigned int), hipMemcpyDeviceToHost);
}
