// Function qualifiers for a GPU of AMD's, as clang's HIP language mode spells them. Device code only: the host
// side of HIP (launches, memory, streams) is not here.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// clang's own launch_bounds attribute leaves the metadata at 1024 threads; these are what ROCm's headers use.
#define KS_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define KS_BOUNDS_2(threads, waves) \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define KS_BOUNDS_PICK(a, b, chosen, ...) chosen
#define __launch_bounds__(...) KS_BOUNDS_PICK(__VA_ARGS__, KS_BOUNDS_2, KS_BOUNDS_1, )(__VA_ARGS__)

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE

#define KS_AMDGPU 1
#define KS_INLINE static __device__ __host__ inline __attribute__((always_inline, unused))
#define KS_DEVICE static __device__ inline __attribute__((always_inline, unused))

#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_AMD__ 1
#undef __HIP_DEVICE_COMPILE__
#define __HIP_DEVICE_COMPILE__ 1
