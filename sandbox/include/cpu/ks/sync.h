// Barriers of a block and the scheduling hints that mean nothing on a CPU.
#pragma once

KS_INLINE void __syncthreads() { ks_barrier(); }
KS_INLINE void __builtin_amdgcn_s_barrier() { ks_barrier(); }

// The predicate summed over the block. The last thread to read sets the sum back for the next call.
KS_INLINE int ks_count_predicate(bool predicate) {
  static int total, read;
  total += predicate;
  ks_barrier();
  const int result = total;
  read++;
  ks_barrier();
  total = read = 0;
  ks_barrier();
  return result;
}
KS_INLINE int __syncthreads_count(int predicate) { return ks_count_predicate(predicate != 0); }
KS_INLINE int __syncthreads_or(int predicate) { return ks_count_predicate(predicate != 0) != 0; }
KS_INLINE int __syncthreads_and(int predicate) { return ks_count_predicate(predicate == 0) == 0; }

// No other thread runs between two barriers: only the compiler must not move memory accesses.
KS_INLINE void __builtin_amdgcn_wave_barrier() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
#define __builtin_amdgcn_fence(...) __atomic_signal_fence(__ATOMIC_SEQ_CST)

KS_INLINE void __builtin_amdgcn_sched_barrier(int) {}
KS_INLINE void __builtin_amdgcn_sched_group_barrier(int, int, int) {}
KS_INLINE void __builtin_amdgcn_iglp_opt(int) {}
KS_INLINE void __builtin_amdgcn_s_setprio(int) {}
KS_INLINE void __builtin_amdgcn_s_sleep(int) {}
KS_INLINE void __builtin_amdgcn_s_waitcnt(int) {}
KS_INLINE void __builtin_amdgcn_s_setreg(int, int) {}
KS_INLINE void __builtin_amdgcn_s_dcache_inv() {}
KS_INLINE void __builtin_amdgcn_buffer_wbinvl1() {}

KS_INLINE unsigned long __builtin_amdgcn_s_memtime() { return __builtin_ia32_rdtsc(); }
KS_INLINE unsigned long __builtin_amdgcn_s_memrealtime() { return __builtin_ia32_rdtsc(); }
