#include <hip/hip_runtime.h>
#include <algorithm>

__device__ __forceinline__ float combine(float a, float b) { return fmaxf(a, b); }

__global__ void softmax(const float* x, float* y, int columns, float scale) {
  extern __shared__ float buffer[];
  const int row = blockIdx.x;
  float top = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) top = combine(top, x[row * columns + c] * scale);
  buffer[threadIdx.x] = top;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) buffer[threadIdx.x] = combine(buffer[threadIdx.x], buffer[threadIdx.x + s]);
    __syncthreads();
  }
  top = buffer[0];
  __syncthreads();
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += __expf(x[row * columns + c] * scale - top);
  buffer[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) buffer[threadIdx.x] += buffer[threadIdx.x + s];
    __syncthreads();
  }
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    y[row * columns + c] = __expf(x[row * columns + c] * scale - top) / buffer[0];
}

struct Tensor {
  float* data;
  size_t bytes;
};

static void run_softmax(float* in, float* out, int rows, int columns, float scale, hipStream_t stream) {
  const int threads = 128;
  softmax<<<rows, threads, threads * sizeof(float), stream>>>(in, out, columns, scale);
}

int main() {
  const int rows = 4096, columns = 1000;
  const float scale = 0.125f;
  float *in, *out, *host = new float[rows * columns];
  hipMalloc(&in, sizeof(float) * rows * columns);
  hipMalloc(&out, sizeof(float) * rows * columns);
  hipMemcpy(in, host, sizeof(float) * rows * columns, hipMemcpyHostToDevice);
  hipStream_t stream;
  hipStreamCreate(&stream);
  run_softmax(in, out, rows, columns, scale, stream);
  hipMemcpyAsync(host, out, sizeof(float) * rows * columns, hipMemcpyDeviceToHost, stream);
  hipStreamSynchronize(stream);
}
