#include <hip/hip_runtime.h>
enum class Layout { kRow, kColumn };

template <Layout layout> __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k, float beta = 0.0f) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int p = 0; p < k; ++p) sum += a[i * k + p] * b[layout == Layout::kRow ? p * n + j : j * k + p];
  c[i * n + j] = sum;
}

#define LAUNCH(layout) matmul<layout><<<dim3(cdiv(n, 16), cdiv(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k, 0.f)

static inline int cdiv(int x, int y) { return x / y + (x % y != 0); }

void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  matmul<Layout::kRow><<<dim3(cdiv(n, 16), cdiv(m, 16)), dim3{16, 16}>>>(a, b, c, m, n, k, 0.f);
}

int main() {
  int m = 256, n = 300, k = 128;
  float *a, *b, *c;
  hipMalloc(&a, m * k * 4);
  hipMalloc(&b, k * n * 4);
  hipMalloc(&c, m * n * 4);
  float* h = new float[m * n + m * k + k * n];
  hipMemcpy(a, h, m * k * 4, hipMemcpyHostToDevice);
  hipMemcpy(b, h, k * n * 4, hipMemcpyHostToDevice);
  multiply(a, b, c, m, n, k);
  hipMemcpy(h, c, m * n * 4, hipMemcpyDeviceToHost);
}
