// Atomic operations. Threads of the grid are fibers that switch only in barriers, so a plain
// read-modify-write is atomic; all of these return the old value.
#pragma once

template <class T, class F> KS_INLINE T ks_exchange(T* address, F f) {
  const T old = *address;
  *address = f(old);
  return old;
}

// The value converts to the address's type, as with HIP's overloads.
template <class T> struct KsSame { using type = T; };
template <class T> using KsValue = typename KsSame<T>::type;

#define KS_ATOMIC(name, expression)                                                                         \
  template <class T> KS_INLINE T name(T* address, KsValue<T> value) {                                       \
    return ks_exchange(address, [&]([[maybe_unused]] T old) -> T { return expression; });                   \
  }                                                                                                         \
  template <class T> KS_INLINE T name##_system(T* address, KsValue<T> value) { return name(address, value); } \
  template <class T> KS_INLINE T name##_block(T* address, KsValue<T> value) { return name(address, value); }
KS_ATOMIC(atomicAdd, T(old + value))
KS_ATOMIC(atomicSub, T(old - value))
KS_ATOMIC(atomicExch, value)
KS_ATOMIC(atomicMin, value < old ? value : old)
KS_ATOMIC(atomicMax, old < value ? value : old)
KS_ATOMIC(atomicAnd, T(old & value))
KS_ATOMIC(atomicOr, T(old | value))
KS_ATOMIC(atomicXor, T(old ^ value))
KS_ATOMIC(atomicInc, T(old >= value ? 0 : old + 1))
KS_ATOMIC(atomicDec, T(old == 0 || old > value ? value : old - 1))
KS_ATOMIC(unsafeAtomicAdd, T(old + value))
KS_ATOMIC(safeAtomicAdd, T(old + value))
KS_ATOMIC(atomicAddNoRet, T(old + value))
#undef KS_ATOMIC

template <class T> KS_INLINE T atomicCAS(T* address, KsValue<T> expected, KsValue<T> value) {
  return ks_exchange(address, [&](T old) -> T { return old == expected ? value : old; });
}
template <class T> KS_INLINE T atomicCAS_system(T* address, KsValue<T> expected, KsValue<T> value) {
  return atomicCAS(address, expected, value);
}

// The scopes of clang's own __hip_atomic_ builtins, which work here as they are.
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5

KS_INLINE void __threadfence() {}
KS_INLINE void __threadfence_block() {}
KS_INLINE void __threadfence_system() {}
