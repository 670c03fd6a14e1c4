// What the 64 lanes of a wave do together: votes and exchanges. `width` divides the wave into equal parts, a
// power of two; the `_sync` forms take a mask and ignore it, for the lanes of a wave always run in step.
#pragma once
#include <ks/index.h>

KS_DEVICE unsigned long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
KS_DEVICE unsigned long long __ballot64(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
KS_DEVICE unsigned long long __activemask() { return __builtin_amdgcn_ballot_w64(true); }
KS_DEVICE int __any(int predicate) { return __ballot(predicate) != 0; }
KS_DEVICE int __all(int predicate) { return __ballot(predicate) == __activemask(); }

// The value of `x` on lane `source` of the wave, 32 bits at a time.
template <class T> KS_DEVICE T ks_from_lane(T x, unsigned source) {
  static_assert(sizeof(T) % 4 == 0 || sizeof(T) < 4, "a lane exchanges whole 32-bit words");
  constexpr unsigned long words = (sizeof(T) + 3) / 4;
  int word[words] = {};
  __builtin_memcpy(word, &x, sizeof(T));
#pragma unroll
  for (unsigned long i = 0; i < words; i++) word[i] = __builtin_amdgcn_ds_bpermute(static_cast<int>(source << 2), word[i]);
  __builtin_memcpy(&x, word, sizeof(T));
  return x;
}

template <class T> KS_DEVICE T __shfl(T x, int source, int width = 64) {
  const unsigned lane = ks_lane();
  return ks_from_lane(x, (unsigned(source) & unsigned(width - 1)) + (lane & ~unsigned(width - 1)));
}

template <class T> KS_DEVICE T __shfl_up(T x, unsigned delta, int width = 64) {
  const unsigned lane = ks_lane();
  return ks_from_lane(x, (lane & unsigned(width - 1)) < delta ? lane : lane - delta);
}

template <class T> KS_DEVICE T __shfl_down(T x, unsigned delta, int width = 64) {
  const unsigned lane = ks_lane();
  return ks_from_lane(x, (lane & unsigned(width - 1)) + delta >= unsigned(width) ? lane : lane + delta);
}

template <class T> KS_DEVICE T __shfl_xor(T x, int mask, int width = 64) {
  const unsigned lane = ks_lane();
  const unsigned source = lane ^ unsigned(mask);
  return ks_from_lane(x, source >= ((lane + unsigned(width)) & ~unsigned(width - 1)) ? lane : source);
}

#define KS_MASKED(name, Second)                                                                          \
  template <class M, class T> KS_DEVICE T name##_sync(M, T x, Second second, int width = 64) { \
    return name(x, second, width);                                                             \
  }
KS_MASKED(__shfl, int)
KS_MASKED(__shfl_up, unsigned)
KS_MASKED(__shfl_down, unsigned)
KS_MASKED(__shfl_xor, int)
#undef KS_MASKED
template <class M> KS_DEVICE unsigned long long __ballot_sync(M mask, int predicate) { return __ballot(predicate) & mask; }
template <class M> KS_DEVICE int __any_sync(M, int predicate) { return __any(predicate); }
template <class M> KS_DEVICE int __all_sync(M, int predicate) { return __all(predicate); }

// The lanes whose value equals this lane's: each turn serves all that equal the first lane that is left.
template <class T> KS_DEVICE unsigned long long __match_any(T value) {
  unsigned long long peers = 0;
  bool waiting = true;
  while (waiting) {
    const T first = ks_from_lane(value, unsigned(__builtin_ctzll(__ballot(waiting))));
    const unsigned long long equal = __ballot(first == value);
    if (first == value) peers = equal, waiting = false;
  }
  return peers;
}
template <class M, class T> KS_DEVICE unsigned long long __match_any_sync(M, T value) { return __match_any(value); }

// Reductions over the lanes that are active, one after another.
#define KS_REDUCE(name, expression)                                                                     \
  template <class M, class T> KS_DEVICE T __reduce_##name##_sync(M, T value) {                          \
    unsigned long long left = __activemask();                                                           \
    T a = ks_from_lane(value, unsigned(__builtin_ctzll(left)));                                         \
    for (left &= left - 1; left; left &= left - 1) {                                                    \
      const T b = ks_from_lane(value, unsigned(__builtin_ctzll(left)));                                 \
      a = T(expression);                                                                                \
    }                                                                                                   \
    return a;                                                                                           \
  }
KS_REDUCE(add, a + b)
KS_REDUCE(min, b < a ? b : a)
KS_REDUCE(max, a < b ? b : a)
KS_REDUCE(and, a & b)
KS_REDUCE(or, a | b)
KS_REDUCE(xor, a ^ b)
#undef KS_REDUCE

#define __hip_ds_bpermute(index, value) __builtin_amdgcn_ds_bpermute(index, value)
#define __hip_ds_permute(index, value) __builtin_amdgcn_ds_permute(index, value)
#define __hip_ds_swizzle(value, pattern) __builtin_amdgcn_ds_swizzle(value, pattern)
