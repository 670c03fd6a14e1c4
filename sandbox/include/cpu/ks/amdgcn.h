// Arithmetic __builtin_amdgcn_ functions that involve no other lane, for gfx942.
#pragma once
#include <ks/float8.h>

#define KS_WORKITEM(axis)                                                                           \
  KS_INLINE unsigned __builtin_amdgcn_workitem_id_##axis() { return unsigned(ks_state.thread.axis); }    \
  KS_INLINE unsigned __builtin_amdgcn_workgroup_id_##axis() { return unsigned(ks_state.block.axis); }    \
  KS_INLINE unsigned __builtin_amdgcn_workgroup_size_##axis() { return unsigned(ks_state.block_dim.axis); }
KS_WORKITEM(x)
KS_WORKITEM(y)
KS_WORKITEM(z)
#undef KS_WORKITEM

KS_INLINE float __builtin_amdgcn_rcpf(float x) { return 1.0f / x; }
KS_INLINE double __builtin_amdgcn_rcp(double x) { return 1.0 / x; }
KS_INLINE float __builtin_amdgcn_rsqf(float x) { return 1.0f / __builtin_sqrtf(x); }
KS_INLINE double __builtin_amdgcn_rsq(double x) { return 1.0 / __builtin_sqrt(x); }
KS_INLINE float __builtin_amdgcn_sqrtf(float x) { return __builtin_sqrtf(x); }
KS_INLINE float __builtin_amdgcn_exp2f(float x) { return __builtin_exp2f(x); }
KS_INLINE float __builtin_amdgcn_logf(float x) { return __builtin_log2f(x); }  // v_log_f32 is base 2
KS_INLINE float __builtin_amdgcn_sinf(float x) { return __builtin_sinf(x * 6.28318530717958648f); }  // in turns
KS_INLINE float __builtin_amdgcn_cosf(float x) { return __builtin_cosf(x * 6.28318530717958648f); }
KS_INLINE float __builtin_amdgcn_fractf(float x) { return x - __builtin_floorf(x); }
KS_INLINE float __builtin_amdgcn_ldexpf(float x, int n) { return __builtin_ldexpf(x, n); }
KS_INLINE float __builtin_amdgcn_fmed3f(float x, float y, float z) {
  return __builtin_fmaxf(__builtin_fminf(x, y), __builtin_fminf(__builtin_fmaxf(x, y), z));
}
KS_INLINE unsigned __builtin_amdgcn_ubfe(unsigned x, unsigned offset, unsigned width) { return __bitextract_u32(x, offset, width); }
KS_INLINE int __builtin_amdgcn_sbfe(int x, unsigned offset, unsigned width) {
  offset &= 31u, width &= 31u;
  return width ? int(unsigned(x) << (32 - width - offset & 31u)) >> (32 - width) : 0;
}
// v_perm_b32: as __byte_perm with one byte of `selector` for each byte, 8 to 11 copying a sign, 12 zero, over 12 ones.
KS_INLINE unsigned __builtin_amdgcn_perm(unsigned high, unsigned low, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned choice = selector >> 8 * i & 0xffu;
    const unsigned byte = choice < 8    ? unsigned(bytes >> 8 * choice & 0xffu)
                          : choice < 12 ? (bytes >> (16 * (choice - 8) + 15) & 1u ? 0xffu : 0u)
                          : choice == 12 ? 0u
                                         : 0xffu;
    result |= byte << 8 * i;
  }
  return result;
}
KS_INLINE unsigned __builtin_amdgcn_alignbit(unsigned high, unsigned low, unsigned shift) { return __funnelshift_r(low, high, shift); }
KS_INLINE unsigned __builtin_amdgcn_alignbyte(unsigned high, unsigned low, unsigned shift) {
  return __funnelshift_r(low, high, (shift & 3u) * 8);
}

KS_INLINE int __builtin_amdgcn_sdot4(int a, int b, int sum, bool) { return __dp4a(a, b, sum); }
KS_INLINE unsigned __builtin_amdgcn_udot4(unsigned a, unsigned b, unsigned sum, bool) { return __dp4a(a, b, sum); }
KS_INLINE int __builtin_amdgcn_sdot8(int a, int b, int sum, bool) {
  for (int i = 0; i < 8; i++) sum += (a << (28 - 4 * i) >> 28) * (b << (28 - 4 * i) >> 28);
  return sum;
}
KS_INLINE unsigned __builtin_amdgcn_udot8(unsigned a, unsigned b, unsigned sum, bool) {
  for (int i = 0; i < 8; i++) sum += (a >> 4 * i & 15u) * (b >> 4 * i & 15u);
  return sum;
}
typedef _Float16 ks_f16x2 __attribute__((ext_vector_type(2)));
typedef __fp16 ks_fp16x2 __attribute__((ext_vector_type(2)));
typedef short ks_s16x2 __attribute__((ext_vector_type(2)));
typedef unsigned short ks_u16x2 __attribute__((ext_vector_type(2)));
typedef float ks_f32x2 __attribute__((ext_vector_type(2)));
KS_INLINE float __builtin_amdgcn_fdot2(ks_f16x2 a, ks_f16x2 b, float sum, bool) {
  return float(a.x) * float(b.x) + float(a.y) * float(b.y) + sum;
}
KS_INLINE int __builtin_amdgcn_sdot2(ks_s16x2 a, ks_s16x2 b, int sum, bool) { return a.x * b.x + a.y * b.y + sum; }
KS_INLINE unsigned __builtin_amdgcn_udot2(ks_u16x2 a, ks_u16x2 b, unsigned sum, bool) {
  return unsigned(a.x) * b.x + unsigned(a.y) * b.y + sum;
}

// Conversions of the fp8 kinds of gfx942: `byte` or `high` picks the part of the 32-bit word.
#define KS_FLOAT8(kind, Format)                                                                                  \
  KS_INLINE float __builtin_amdgcn_cvt_f32_##kind(int word, int byte) {                                          \
    return ks::decode_float8<Format>(static_cast<unsigned char>(unsigned(word) >> 8 * byte));                    \
  }                                                                                                              \
  KS_INLINE ks_f32x2 __builtin_amdgcn_cvt_pk_f32_##kind(int word, bool high) {                                   \
    const unsigned half = unsigned(word) >> (high ? 16 : 0);                                                     \
    return ks_f32x2{ks::decode_float8<Format>(static_cast<unsigned char>(half)),                                 \
                    ks::decode_float8<Format>(static_cast<unsigned char>(half >> 8))};                           \
  }                                                                                                              \
  KS_INLINE int __builtin_amdgcn_cvt_pk_##kind##_f32(float a, float b, int old, bool high) {                     \
    const unsigned pair = ks::encode_float8<Format>(a, false) | unsigned(ks::encode_float8<Format>(b, false)) << 8; \
    return int(high ? (unsigned(old) & 0xffffu) | pair << 16 : (unsigned(old) & 0xffff0000u) | pair);            \
  }
KS_FLOAT8(fp8, ks::E4M3Fnuz)
KS_FLOAT8(bf8, ks::E5M2Fnuz)
#undef KS_FLOAT8
