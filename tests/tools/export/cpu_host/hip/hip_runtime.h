// The host side of HIP on a CPU, for tests of exported files: kernels run on the HIP-on-CPU device's fibers in
// this very process, device memory is malloc's, and every call is synchronous.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

// Device functions that the C library has declared by now; only kernels use these names from here on.
#define abs ks_device_abs
#define labs ks_device_labs
#define llabs ks_device_llabs
#define clock ks_device_clock
#define abort ks_device_abort
#include_next <hip/hip_runtime.h>

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 };
typedef struct ihipStream_t* hipStream_t;
struct ihipEvent_t { std::chrono::steady_clock::time_point at; };
typedef ihipEvent_t* hipEvent_t;
struct hipDeviceProp_t { char name[256]; char gcnArchName[256]; };

inline const char* hipGetErrorString(hipError_t e) { return e == hipSuccess ? "no error" : "invalid argument"; }
inline hipError_t hipMalloc(void** at, std::size_t bytes) {
  // A guard of poison behind each buffer shows a kernel that writes past its end.
  *at = std::malloc(bytes + 64);
  return *at ? hipSuccess : hipErrorInvalidValue;
}
inline hipError_t hipFree(void* at) { std::free(at); return hipSuccess; }
inline hipError_t hipMemset(void* at, int byte, std::size_t bytes) { std::memset(at, byte, bytes); return hipSuccess; }
inline hipError_t hipMemsetAsync(void* at, int byte, std::size_t bytes, hipStream_t) { return hipMemset(at, byte, bytes); }
inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind) {
  std::memcpy(to, from, bytes);
  return hipSuccess;
}
inline hipError_t hipStreamCreate(hipStream_t* stream) { *stream = nullptr; return hipSuccess; }
inline hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
inline hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
inline hipError_t hipDeviceSynchronize() { return hipSuccess; }
inline hipError_t hipGetLastError() { return hipSuccess; }
inline hipError_t hipEventCreate(hipEvent_t* event) { *event = new ihipEvent_t; return hipSuccess; }
inline hipError_t hipEventDestroy(hipEvent_t event) { delete event; return hipSuccess; }
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t) { event->at = std::chrono::steady_clock::now(); return hipSuccess; }
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
inline hipError_t hipEventElapsedTime(float* ms, hipEvent_t begin, hipEvent_t end) {
  *ms = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return hipSuccess;
}
inline hipError_t hipGetDevice(int* device) { *device = 0; return hipSuccess; }
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  std::strcpy(properties->name, "a CPU");
  std::strcpy(properties->gcnArchName, "x86-64");
  return hipSuccess;
}

extern "C" void ks_host_run(const std::function<void()>& thread, dim3 grid, dim3 block, unsigned lds);
#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) \
  ks_host_run([=] { (kernel)(__VA_ARGS__); }, grid, block, lds)
