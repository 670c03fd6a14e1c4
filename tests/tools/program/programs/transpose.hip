#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

constexpr int kTile = 32;
constexpr int kRows = 8;

template <typename T, int TILE, int ROWS>
__global__ void __launch_bounds__(TILE* ROWS) transpose(const T* in, T* out, int rows, int columns) {
  __shared__ T tile[TILE][TILE + 1];
  const int x = blockIdx.x * TILE + threadIdx.x;
  for (int r = threadIdx.y; r < TILE; r += ROWS) {
    const int y = blockIdx.y * TILE + r;
    if (x < columns && y < rows) tile[r][threadIdx.x] = in[(size_t)y * columns + x];
  }
  __syncthreads();
  const int u = blockIdx.y * TILE + threadIdx.x;
  for (int r = threadIdx.y; r < TILE; r += ROWS) {
    const int v = blockIdx.x * TILE + r;
    if (u < rows && v < columns) out[(size_t)v * rows + u] = tile[threadIdx.x][r];
  }
}

int main() {
  int rows = 2048, columns = 1024;
  __half *d_in, *d_out;
  hipMalloc(&d_in, rows * columns * sizeof(__half));
  hipMalloc(&d_out, rows * columns * sizeof(__half));
  __half* host = new __half[rows * columns];
  hipMemcpy(d_in, host, rows * columns * sizeof(__half), hipMemcpyHostToDevice);
  dim3 threads(kTile, kRows);
  dim3 blocks((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<__half, kTile, kRows><<<blocks, threads>>>(d_in, d_out, rows, columns);
  hipMemcpy(host, d_out, rows * columns * sizeof(__half), hipMemcpyDeviceToHost);
  return 0;
}
