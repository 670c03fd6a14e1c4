// Barriers and fences: a fence on either side of the barrier instruction orders LDS and global memory.
#pragma once
#include <ks/index.h>

KS_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KS_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
KS_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
KS_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// Lanes of a wave run in step; only the compiler must be kept from moving memory accesses.
KS_DEVICE void __syncwarp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
KS_DEVICE void __syncwarp(unsigned long) { __syncwarp(); }

// The predicate summed over the block, through one LDS word that every call shares.
static __device__ inline int ks_count_predicate(bool predicate) {
  __shared__ int total;
  if (ks_linear_thread() == 0) total = 0;
  __syncthreads();
  if (predicate) __hip_atomic_fetch_add(&total, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  const int result = total;
  __syncthreads();
  return result;
}

KS_DEVICE int __syncthreads_count(int predicate) { return ks_count_predicate(predicate != 0); }
KS_DEVICE int __syncthreads_or(int predicate) { return ks_count_predicate(predicate != 0) != 0; }
KS_DEVICE int __syncthreads_and(int predicate) { return ks_count_predicate(predicate == 0) == 0; }
