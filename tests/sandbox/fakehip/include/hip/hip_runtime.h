// <hip/hip_runtime.h> of the test's hipcc: the device side is the product's own, the host side declares of HIP's API what
// exported files use, with HIP's names and types. The CPU device's build sees the host side only to drop it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

// Device functions that the C library has declared by now; only kernels use these names from here on.
#define abs ks_device_abs
#define labs ks_device_labs
#define llabs ks_device_llabs
#define clock ks_device_clock
#define abort ks_device_abort
#ifdef __HIP__
#define KS_LAUNCH(kernel, grid, block, lds, stream, ...) (kernel)<<<grid, block, lds, stream>>>(__VA_ARGS__)
#else
#define KS_LAUNCH(kernel, grid, block, lds, stream, ...) \
  ((void)(kernel), (void)(grid), (void)(block), (void)(lds), (void)(stream), ks_drop(__VA_ARGS__))
template <class... A> void ks_drop(const A&...) {}
#endif
#include_next <hip/hip_runtime.h>

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipMemcpyDeviceToDevice = 3 };
typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
// As in ROCm 6 and later, as far as names go.
struct hipDeviceProp_t {
  char name[256], between[1160 - 256], gcnArchName[256], rest[56];
};

extern "C" {
hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipFree(void* pointer);
hipError_t hipMemset(void* to, int value, size_t bytes);
hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream);
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipDeviceSynchronize(void);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t begin, hipEvent_t end);
hipError_t hipGetDevice(int* device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t* properties, int device);
hipError_t hipGetLastError(void);
const char* hipGetErrorString(hipError_t code);
hipError_t hipLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t lds, hipStream_t stream);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t lds, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* lds, hipStream_t* stream);
}
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
#define hipLaunchKernelGGL KS_LAUNCH
