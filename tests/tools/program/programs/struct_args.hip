#include <hip/hip_runtime.h>

struct Params {
  int n;
  float alpha;
};

__global__ void scale(Params p, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) y[i] = p.alpha * x[i];
}

int main() {
  Params p;
  p.n = 100000;
  p.alpha = 2.0f;
  float *x, *y;
  hipMallocManaged(&x, p.n * sizeof(float));
  hipMallocManaged(&y, p.n * sizeof(float));
  for (int i = 0; i < p.n; ++i) x[i] = i;
  scale<<<(p.n + 255) / 256, 256>>>(p, x, y);
  hipDeviceSynchronize();
}
