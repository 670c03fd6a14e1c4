#include <hip/hip_runtime.h>
#include <utility>

#define NX 512
#define NY 512
#define BX 32
#define BY 8
#define IDX(i, j) ((i) * ny + (j))
#define DIVUP(a, b) (((a) + (b) - 1) / (b))

__global__ void jacobi(const float* in, float* out, int nx, int ny) {
  int j = blockIdx.x * BX + threadIdx.x, i = blockIdx.y * BY + threadIdx.y;
  if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1)
    out[IDX(i, j)] = 0.25f * (in[IDX(i - 1, j)] + in[IDX(i + 1, j)] + in[IDX(i, j - 1)] + in[IDX(i, j + 1)]);
}

int main() {
  int nx = NX, ny = NY, iterations = 100;
  float *old_grid, *new_grid;
  float* h = (float*)malloc(nx * ny * sizeof(float));
  hipMalloc(&old_grid, nx * ny * sizeof(float));
  hipMalloc(&new_grid, nx * ny * sizeof(float));
  hipMemcpy(old_grid, h, nx * ny * sizeof(float), hipMemcpyHostToDevice);
  dim3 block(BX, BY);
  dim3 grid(DIVUP(ny, BX), DIVUP(nx, BY));
  for (int it = 0; it < iterations; it++) {
    hipLaunchKernelGGL(jacobi, grid, block, 0, 0, old_grid, new_grid, nx, ny);
    std::swap(old_grid, new_grid);
  }
  hipMemcpy(h, old_grid, nx * ny * sizeof(float), hipMemcpyDeviceToHost);
}
