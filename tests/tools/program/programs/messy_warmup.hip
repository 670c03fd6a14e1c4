/* Timing loops, macros round every call, preprocessor conditions, cooperation of old and new style. */
#ifdef __HIPCC__
#include "hip/hip_runtime.h"
#endif
#include <chrono>
#include <stdio.h>
#include "common/helpers.h"
#ifndef TPB
#define TPB 128
#endif
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(hipError_t code, const char *file, int line) { if (code != hipSuccess) { fprintf(stderr, "%s %s %d\n", hipGetErrorString(code), file, line); } }

#ifdef USE_DOUBLE
typedef double real;
#else
typedef float real;
#endif

__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};

__device__ inline float at(const float *v, int i, int n) { return i < 0 || i >= n ? 0.0f : v[i]; }

__global__ void
smooth(float *dst, const float *src, const int n)
{
    const int gid = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
    if (gid < n) {
        float acc = 0.f;
        #pragma unroll
        for (int k = -1; k <= 1; k++) acc += weights[k + 1] * at(src, gid + k, n);
        dst[gid] = acc;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) { printf("usage\n"); return 1; }
    const int n = atoi(argv[1]);
    const int repeat = atoi(argv[2]);
    float *h_src = (float*) malloc(sizeof(float) * n), *h_dst = (float*) malloc(sizeof(float) * n);
    float *d_src = NULL, *d_dst = nullptr;
    gpuErrchk( hipMalloc((void **)&d_src, sizeof(float) * n) );
    gpuErrchk( hipMalloc((void **)&d_dst, sizeof(float) * n) );
    gpuErrchk( hipMemcpy(d_src, h_src, sizeof(float) * n, hipMemcpyHostToDevice) );
    const dim3 grids ((n + TPB - 1) / TPB), blocks (TPB);
    // warm up
    hipLaunchKernelGGL(smooth, grids, blocks, 0, 0, d_dst, d_src, n);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeat; i++) {
        hipLaunchKernelGGL(smooth, grids, blocks, 0, 0, d_dst, d_src, n);
    }
    gpuErrchk( hipDeviceSynchronize() );
    auto end = std::chrono::steady_clock::now();
    gpuErrchk( hipMemcpy(h_dst, d_dst, sizeof(float) * n, hipMemcpyDeviceToHost) );
    free(h_src);
    return 0;
}
