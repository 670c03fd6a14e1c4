// Atomic functions, relaxed and at device scope unless the name ends in _block or _system.
#pragma once
#include <ks/target.h>

#define KS_ATOMIC(name, builtin, T)                                                                  \
  KS_DEVICE T name(T* p, T v) { return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }  \
  KS_DEVICE T name##_block(T* p, T v) { return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); } \
  KS_DEVICE T name##_system(T* p, T v) { return builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }

#define KS_ATOMIC_INTEGERS(name, builtin) \
  KS_ATOMIC(name, builtin, int)           \
  KS_ATOMIC(name, builtin, unsigned)      \
  KS_ATOMIC(name, builtin, long long)     \
  KS_ATOMIC(name, builtin, unsigned long long) \
  KS_ATOMIC(name, builtin, unsigned long)
#define KS_ATOMIC_REALS(name, builtin) KS_ATOMIC(name, builtin, float) KS_ATOMIC(name, builtin, double)

KS_ATOMIC_INTEGERS(atomicAdd, __hip_atomic_fetch_add)
KS_ATOMIC_REALS(atomicAdd, __hip_atomic_fetch_add)
KS_ATOMIC_INTEGERS(atomicMin, __hip_atomic_fetch_min)
KS_ATOMIC_REALS(atomicMin, __hip_atomic_fetch_min)
KS_ATOMIC_INTEGERS(atomicMax, __hip_atomic_fetch_max)
KS_ATOMIC_REALS(atomicMax, __hip_atomic_fetch_max)
KS_ATOMIC_INTEGERS(atomicAnd, __hip_atomic_fetch_and)
KS_ATOMIC_INTEGERS(atomicOr, __hip_atomic_fetch_or)
KS_ATOMIC_INTEGERS(atomicXor, __hip_atomic_fetch_xor)
KS_ATOMIC_INTEGERS(atomicExch, __hip_atomic_exchange)
KS_ATOMIC_REALS(atomicExch, __hip_atomic_exchange)
#undef KS_ATOMIC
#undef KS_ATOMIC_INTEGERS
#undef KS_ATOMIC_REALS

KS_DEVICE int atomicSub(int* p, int v) { return atomicAdd(p, -v); }
KS_DEVICE unsigned atomicSub(unsigned* p, unsigned v) { return atomicAdd(p, 0u - v); }
KS_DEVICE float atomicSub(float* p, float v) { return atomicAdd(p, -v); }
KS_DEVICE double atomicSub(double* p, double v) { return atomicAdd(p, -v); }

// The hardware instruction for doubles and floats, without a compare-and-swap loop.
KS_DEVICE float unsafeAtomicAdd(float* p, float v) { return atomicAdd(p, v); }
KS_DEVICE double unsafeAtomicAdd(double* p, double v) { return atomicAdd(p, v); }
KS_DEVICE float safeAtomicAdd(float* p, float v) { return atomicAdd(p, v); }
KS_DEVICE double safeAtomicAdd(double* p, double v) { return atomicAdd(p, v); }
KS_DEVICE float atomicAddNoRet(float* p, float v) { return atomicAdd(p, v); }

#define KS_CAS(T)                                                                                              \
  KS_DEVICE T atomicCAS(T* p, T expected, T desired) {                                                         \
    __hip_atomic_compare_exchange_strong(p, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED,            \
                                         __HIP_MEMORY_SCOPE_AGENT);                                            \
    return expected;                                                                                           \
  }
KS_CAS(int)
KS_CAS(unsigned)
KS_CAS(long long)
KS_CAS(unsigned long long)
KS_CAS(unsigned long)
KS_CAS(float)
KS_CAS(double)
#undef KS_CAS

KS_DEVICE unsigned atomicInc(unsigned* p, unsigned limit) {
  return __builtin_amdgcn_atomic_inc32(p, limit, __ATOMIC_RELAXED, "agent");
}
KS_DEVICE unsigned atomicDec(unsigned* p, unsigned limit) {
  return __builtin_amdgcn_atomic_dec32(p, limit, __ATOMIC_RELAXED, "agent");
}
