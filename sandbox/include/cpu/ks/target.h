// Function qualifiers and macros of HIP device code, for the CPU.
#pragma once
#include <ks/runtime.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __align__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// LDS: one copy for the block that runs; the runtime fills the section with NaNs before each block.
// A section per declaration lets the compiler count what each kernel reaches.
#define KS_QUOTED(x) #x
#define KS_LDS_SECTION(n) ".bss.ks_lds." KS_QUOTED(n)
#define __shared__ static __attribute__((section(KS_LDS_SECTION(__COUNTER__))))
#define KS_DYNAMIC_LDS
#define HIP_DYNAMIC_SHARED(type, name) extern KS_DYNAMIC_LDS type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE

// `__shared__ alignas(16) T x` is usual, but C++ allows no alignas behind `static`; an attribute may stand there.
template <auto N> constexpr int ks_alignment() { return N; }
template <class T> constexpr int ks_alignment() { return alignof(T); }
#define alignas(...) __attribute__((aligned(ks_alignment<__VA_ARGS__>())))

#define KS_CPU 1
#define KS_DEVICE KS_INLINE

#define __HIP__ 1
#define __HIPCC__ 1
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DEVICE_COMPILE__ 1
#define __gfx942__ 1
#define __GFX9__ 1
#define __AMDGCN_WAVEFRONT_SIZE 64
#define __AMDGCN_WAVEFRONT_SIZE__ 64
