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

template <class T> KS_DEVICE T __shfl_sync(unsigned long long, T x, int source, int width = 64) {
  return __shfl(x, source, width);
}
template <class T> KS_DEVICE T __shfl_up_sync(unsigned long long, T x, unsigned delta, int width = 64) {
  return __shfl_up(x, delta, width);
}
template <class T> KS_DEVICE T __shfl_down_sync(unsigned long long, T x, unsigned delta, int width = 64) {
  return __shfl_down(x, delta, width);
}
template <class T> KS_DEVICE T __shfl_xor_sync(unsigned long long, T x, int mask, int width = 64) {
  return __shfl_xor(x, mask, width);
}
KS_DEVICE unsigned long long __ballot_sync(unsigned long long mask, int predicate) { return __ballot(predicate) & mask; }
KS_DEVICE int __any_sync(unsigned long long mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
KS_DEVICE int __all_sync(unsigned long long mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
