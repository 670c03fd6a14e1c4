// Operations among the 64 lanes of a wave: shuffles, votes, reductions, and the builtins below them.
//
// Each is one function that runs once over the frames of all lanes that take part (ks_wave_barrier). A value
// read from a lane that does not take part is zero.
#pragma once

inline constexpr int warpSize = KS_WAVE;

KS_INLINE unsigned __lane_id() { return ks_lane(); }

// What a lane brings and takes: `value` is read by others, `source` is the lane that it reads.
template <class T> struct KsShuffle {
  T value, result;
  int source;
};

template <class T> inline void ks_shuffle_op(void* const frames[KS_WAVE], unsigned long active) {
  for (unsigned long left = active; left; left &= left - 1) {
    auto& lane = *static_cast<KsShuffle<T>*>(frames[__builtin_ctzl(left)]);
    const bool taking_part = active >> (lane.source & 63) & 1ul;
    lane.result = taking_part ? static_cast<KsShuffle<T>*>(frames[lane.source & 63])->value : T{};
  }
}

template <class T> KS_INLINE T ks_shuffle(T value, int source) {
  KsShuffle<T> frame{value, value, source};
  ks_wave_barrier(ks_shuffle_op<T>, &frame);
  return frame.result;
}

template <class T> KS_INLINE T __shfl(T value, int source, int width = warpSize) {
  const int lane = int(ks_lane());
  return ks_shuffle(value, (source & (width - 1)) | (lane & ~(width - 1)));
}
template <class T> KS_INLINE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  const int lane = int(ks_lane()), source = lane - int(delta);
  return ks_shuffle(value, source < (lane & ~(width - 1)) ? lane : source);
}
template <class T> KS_INLINE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  const int lane = int(ks_lane());
  return ks_shuffle(value, (lane & (width - 1)) + int(delta) >= width ? lane : lane + int(delta));
}
template <class T> KS_INLINE T __shfl_xor(T value, int mask, int width = warpSize) {
  const int lane = int(ks_lane()), source = lane ^ mask;
  return ks_shuffle(value, source >= ((lane + width) & ~(width - 1)) ? lane : source);
}
#define KS_MASKED(name, Second)                                                                            \
  template <class M, class T> KS_INLINE T name##_sync(M, T value, Second second, int width = warpSize) { \
    return name(value, second, width);                                                                   \
  }
KS_MASKED(__shfl, int)
KS_MASKED(__shfl_up, unsigned)
KS_MASKED(__shfl_down, unsigned)
KS_MASKED(__shfl_xor, int)
#undef KS_MASKED

struct KsVote {
  unsigned long votes, active;
  bool vote;
};

inline void ks_vote_op(void* const frames[KS_WAVE], unsigned long active) {
  unsigned long votes = 0;
  for (unsigned long left = active; left; left &= left - 1) {
    const unsigned lane = unsigned(__builtin_ctzl(left));
    votes |= static_cast<unsigned long>(static_cast<KsVote*>(frames[lane])->vote) << lane;
  }
  for (unsigned long left = active; left; left &= left - 1)
    *static_cast<KsVote*>(frames[__builtin_ctzl(left)]) = {votes, active, false};
}

KS_INLINE KsVote ks_vote(bool vote) {
  KsVote frame{0, 0, vote};
  ks_wave_barrier(ks_vote_op, &frame);
  return frame;
}

KS_INLINE unsigned long long __ballot(int vote) { return ks_vote(vote != 0).votes; }
KS_INLINE unsigned long long __ballot64(int vote) { return ks_vote(vote != 0).votes; }
KS_INLINE int __any(int vote) { return ks_vote(vote != 0).votes != 0; }
KS_INLINE int __all(int vote) {
  const KsVote v = ks_vote(vote != 0);
  return v.votes == v.active;
}
KS_INLINE unsigned long long __activemask() { return ks_vote(true).active; }
template <class M> KS_INLINE unsigned long long __ballot_sync(M mask, int vote) { return __ballot(vote) & mask; }
template <class M> KS_INLINE int __any_sync(M, int vote) { return __any(vote); }
template <class M> KS_INLINE int __all_sync(M, int vote) { return __all(vote); }

KS_INLINE void ks_nothing_op(void* const*, unsigned long) {}
KS_INLINE void __syncwarp(unsigned long long = ~0ull) { ks_wave_barrier(ks_nothing_op, nullptr); }

struct KsMatch {
  unsigned long key, peers;
};

inline void ks_match_op(void* const frames[KS_WAVE], unsigned long active) {
  for (unsigned long left = active; left; left &= left - 1) {
    auto& lane = *static_cast<KsMatch*>(frames[__builtin_ctzl(left)]);
    lane.peers = 0;
    for (unsigned long other = active; other; other &= other - 1)
      if (static_cast<KsMatch*>(frames[__builtin_ctzl(other)])->key == lane.key) lane.peers |= other & -other;
  }
}

template <class T> KS_INLINE unsigned long long __match_any(T value) {
  KsMatch frame{0, 0};
  __builtin_memcpy(&frame.key, &value, sizeof value);
  ks_wave_barrier(ks_match_op, &frame);
  return frame.peers;
}
template <class M, class T> KS_INLINE unsigned long long __match_any_sync(M, T value) { return __match_any(value); }

// Reductions over the lanes named in `mask` that take part.
template <class T> struct KsReduce {
  T value;
};

template <class T, class F> inline void ks_reduce_op(void* const frames[KS_WAVE], unsigned long active) {
  T total = static_cast<KsReduce<T>*>(frames[__builtin_ctzl(active)])->value;
  for (unsigned long left = active & (active - 1); left; left &= left - 1)
    total = F{}(total, static_cast<KsReduce<T>*>(frames[__builtin_ctzl(left)])->value);
  for (unsigned long left = active; left; left &= left - 1)
    static_cast<KsReduce<T>*>(frames[__builtin_ctzl(left)])->value = total;
}

#define KS_REDUCE(name, expression)                                                                     \
  template <class T> struct KsReduce_##name { T operator()(T a, T b) const { return T(expression); } }; \
  template <class M, class T> KS_INLINE T __reduce_##name##_sync(M, T value) {                          \
    KsReduce<T> frame{value};                                                                           \
    ks_wave_barrier(ks_reduce_op<T, KsReduce_##name<T>>, &frame);                                       \
    return frame.value;                                                                                 \
  }
KS_REDUCE(add, a + b)
KS_REDUCE(min, b < a ? b : a)
KS_REDUCE(max, a < b ? b : a)
KS_REDUCE(and, a & b)
KS_REDUCE(or, a | b)
KS_REDUCE(xor, a ^ b)
#undef KS_REDUCE

template <class T> inline void ks_first_lane_op(void* const frames[KS_WAVE], unsigned long active) {
  const T first = static_cast<KsReduce<T>*>(frames[__builtin_ctzl(active)])->value;
  for (unsigned long left = active; left; left &= left - 1)
    static_cast<KsReduce<T>*>(frames[__builtin_ctzl(left)])->value = first;
}
KS_INLINE int __builtin_amdgcn_readfirstlane(int value) {
  KsReduce<int> frame{value};
  ks_wave_barrier(ks_first_lane_op<int>, &frame);
  return frame.value;
}
KS_INLINE int __builtin_amdgcn_readlane(int value, int lane) { return ks_shuffle(value, lane); }
KS_INLINE int __builtin_amdgcn_ds_bpermute(int byte_address, int value) { return ks_shuffle(value, byte_address >> 2); }

inline void ks_permute_op(void* const frames[KS_WAVE], unsigned long active) {
  for (unsigned long left = active; left; left &= left - 1)
    static_cast<KsShuffle<int>*>(frames[__builtin_ctzl(left)])->result = 0;
  for (unsigned long left = active; left; left &= left - 1) {
    const auto& lane = *static_cast<KsShuffle<int>*>(frames[__builtin_ctzl(left)]);
    if (active >> (lane.source & 63) & 1ul) static_cast<KsShuffle<int>*>(frames[lane.source & 63])->result = lane.value;
  }
}
KS_INLINE int __builtin_amdgcn_ds_permute(int byte_address, int value) {
  KsShuffle<int> frame{value, 0, byte_address >> 2};
  ks_wave_barrier(ks_permute_op, &frame);
  return frame.result;
}

// CDNA3 ISA, DS_SWIZZLE_B32: bit 15 set permutes within groups of four, else and/or/xor masks on 5 bits.
KS_INLINE int __builtin_amdgcn_ds_swizzle(int value, int pattern) {
  const int lane = int(ks_lane());
  if (pattern & 0x8000) return ks_shuffle(value, (lane & ~3) | (pattern >> 2 * (lane & 3) & 3));
  const int low = (((lane & 31) & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return ks_shuffle(value, (lane & 32) | low);
}

// CDNA3 ISA, "DPP_CTRL enumerants": the lane that `lane` reads, or -1 for none.
KS_INLINE int ks_dpp_source(int control, int lane) {
  const int row = lane & ~15, in_row = lane & 15, count = control & 15;
  if (control <= 0xff) return (lane & ~3) | (control >> 2 * (lane & 3) & 3);       // quad_perm
  if (control >= 0x101 && control <= 0x10f) return in_row + count > 15 ? -1 : lane + count;  // row_shl
  if (control >= 0x111 && control <= 0x11f) return in_row < count ? -1 : lane - count;       // row_shr
  if (control >= 0x121 && control <= 0x12f) return row | ((in_row - count) & 15);            // row_ror
  switch (control) {
    case 0x130: return lane == 63 ? -1 : lane + 1;           // wave_shl
    case 0x134: return (lane + 1) & 63;                      // wave_rol
    case 0x138: return lane - 1;                             // wave_shr
    case 0x13c: return (lane - 1) & 63;                      // wave_ror
    case 0x140: return row | (15 - in_row);                  // row_mirror
    case 0x141: return (lane & ~7) | (7 - (lane & 7));       // row_half_mirror
    case 0x142: return row == 0 ? -1 : row - 1;              // row_bcast:15
    case 0x143: return lane < 32 ? -1 : 31;                  // row_bcast:31
    default: return control >= 0x150 && control <= 0x15f ? row | count : -1;  // row_newbcast
  }
}
KS_INLINE int __builtin_amdgcn_update_dpp(int old, int value, int control, int row_mask, int bank_mask, bool bound_control) {
  const int lane = int(ks_lane()), source = ks_dpp_source(control, lane);
  const int moved = ks_shuffle(value, source < 0 ? lane : source);
  const bool enabled = (row_mask >> lane / 16 & 1) && (bank_mask >> lane % 16 / 4 & 1);
  if (!enabled) return old;
  return source < 0 ? (bound_control ? 0 : old) : moved;
}
KS_INLINE int __builtin_amdgcn_mov_dpp(int value, int control, int row_mask, int bank_mask, bool bound_control) {
  return __builtin_amdgcn_update_dpp(0, value, control, row_mask, bank_mask, bound_control);
}
KS_INLINE int __hip_ds_bpermute(int byte_address, int value) { return __builtin_amdgcn_ds_bpermute(byte_address, value); }
KS_INLINE int __hip_ds_permute(int byte_address, int value) { return __builtin_amdgcn_ds_permute(byte_address, value); }
#define __hip_ds_swizzle(value, pattern) __builtin_amdgcn_ds_swizzle(value, pattern)

// Set bits of `mask` below this lane, in the low or high half of the wave.
KS_INLINE unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned base) {
  const unsigned lane = ks_lane();
  return base + unsigned(__builtin_popcount(mask & (lane >= 32 ? ~0u : (1u << lane) - 1)));
}
KS_INLINE unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned base) {
  const unsigned lane = ks_lane();
  return lane < 32 ? base : base + unsigned(__builtin_popcount(mask & ((1u << (lane - 32)) - 1)));
}
KS_INLINE unsigned long __builtin_amdgcn_read_exec() { return ks_vote(true).active; }
KS_INLINE unsigned __builtin_amdgcn_wavefrontsize() { return KS_WAVE; }
