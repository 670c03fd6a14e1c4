// __hip_bfloat16 and __hip_bfloat162 with HIP's conversions, arithmetic and mathematics.
//
// A bfloat16 is the upper half of a float. Arithmetic is done in single precision and rounded to nearest even.
#pragma once
#include <hip/hip_runtime.h>

struct __hip_bfloat16_raw {
  unsigned short x;
};

KS_HD constexpr unsigned short ks_float_to_bfloat16(float value) {
  const unsigned word = __builtin_bit_cast(unsigned, value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>(word >> 16 | 0x40u);
  return static_cast<unsigned short>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}
KS_HD constexpr float ks_bfloat16_to_float(unsigned short bits) { return __builtin_bit_cast(float, unsigned(bits) << 16); }

struct __hip_bfloat16 {
  unsigned short data;

  __hip_bfloat16() = default;
  template <class T>
    requires(__is_arithmetic(T))
  KS_HD constexpr __hip_bfloat16(T x) : data(ks_float_to_bfloat16(static_cast<float>(x))) {}
  KS_HD constexpr __hip_bfloat16(__hip_bfloat16_raw raw) : data(raw.x) {}

  template <class T>
    requires(__is_arithmetic(T))
  KS_HD constexpr operator T() const { return static_cast<T>(ks_bfloat16_to_float(data)); }
  KS_HD constexpr operator __hip_bfloat16_raw() const { return {data}; }

  KS_HD constexpr __hip_bfloat16 operator-() const { return __hip_bfloat16_raw{static_cast<unsigned short>(data ^ 0x8000u)}; }
};

struct alignas(4) __hip_bfloat162 {
  __hip_bfloat16 x, y;

  __hip_bfloat162() = default;
  KS_HD constexpr __hip_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) : x(x), y(y) {}

  KS_HD constexpr __hip_bfloat162 operator-() const { return {-x, -y}; }
};

KS_INLINE __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __hip_bfloat16_raw{x}; }
KS_INLINE __hip_bfloat16 __short_as_bfloat16(short x) { return __hip_bfloat16_raw{static_cast<unsigned short>(x)}; }
KS_INLINE unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return x.data; }
KS_INLINE short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(x.data); }

KS_INLINE __hip_bfloat16 __float2bfloat16(float x) { return x; }
KS_INLINE __hip_bfloat16 __float2bfloat16_rn(float x) { return x; }
KS_INLINE __hip_bfloat16 __float2bfloat16_rz(float x) {
  return x != x ? __hip_bfloat16(x) : __ushort_as_bfloat16(static_cast<unsigned short>(ks_bits<unsigned>(x) >> 16));
}
KS_INLINE __hip_bfloat16 __double2bfloat16(double x) { return float(x); }
KS_INLINE float __bfloat162float(__hip_bfloat16 x) { return float(x); }
KS_INLINE __hip_bfloat16 __int2bfloat16_rn(int x) { return float(x); }
KS_INLINE __hip_bfloat16 __uint2bfloat16_rn(unsigned x) { return float(x); }
KS_INLINE int __bfloat162int_rn(__hip_bfloat16 x) { return ks_to_integer<int>(__builtin_nearbyintf(float(x))); }
KS_INLINE int __bfloat162int_rz(__hip_bfloat16 x) { return ks_to_integer<int>(__builtin_truncf(float(x))); }

KS_INLINE __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
KS_INLINE __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
KS_INLINE __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
KS_INLINE __hip_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
KS_INLINE __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
KS_INLINE __hip_bfloat162 __float22bfloat162_rn(float2 x) { return {x.x, x.y}; }
KS_INLINE float2 __bfloat1622float2(__hip_bfloat162 x) { return {float(x.x), float(x.y)}; }
KS_INLINE __hip_bfloat16 __low2bfloat16(__hip_bfloat162 x) { return x.x; }
KS_INLINE __hip_bfloat16 __high2bfloat16(__hip_bfloat162 x) { return x.y; }
KS_INLINE float __low2float(__hip_bfloat162 x) { return float(x.x); }
KS_INLINE float __high2float(__hip_bfloat162 x) { return float(x.y); }
KS_INLINE __hip_bfloat162 __low2bfloat162(__hip_bfloat162 x) { return {x.x, x.x}; }
KS_INLINE __hip_bfloat162 __high2bfloat162(__hip_bfloat162 x) { return {x.y, x.y}; }
KS_INLINE __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 x) { return {x.y, x.x}; }

#define KS_BFLOAT_ARITHMETIC(op, name)                                                                               \
  KS_HD constexpr __hip_bfloat16 operator op(const __hip_bfloat16& a, const __hip_bfloat16& b) { return float(a) op float(b); } \
  KS_HD constexpr __hip_bfloat16& operator op##=(__hip_bfloat16& a, const __hip_bfloat16& b) { return a = a op b; }  \
  KS_HD constexpr __hip_bfloat162 operator op(const __hip_bfloat162& a, const __hip_bfloat162& b) {                  \
    return {a.x op b.x, a.y op b.y};                                                                                 \
  }                                                                                                                  \
  KS_HD constexpr __hip_bfloat162& operator op##=(__hip_bfloat162& a, const __hip_bfloat162& b) { return a = a op b; } \
  KS_INLINE __hip_bfloat16 __h##name(__hip_bfloat16 a, __hip_bfloat16 b) { return a op b; }
KS_BFLOAT_ARITHMETIC(+, add)
KS_BFLOAT_ARITHMETIC(-, sub)
KS_BFLOAT_ARITHMETIC(*, mul)
KS_BFLOAT_ARITHMETIC(/, div)
#undef KS_BFLOAT_ARITHMETIC
KS_INLINE __hip_bfloat162 __hadd2(__hip_bfloat162 a, __hip_bfloat162 b) { return a + b; }
KS_INLINE __hip_bfloat162 __hsub2(__hip_bfloat162 a, __hip_bfloat162 b) { return a - b; }
KS_INLINE __hip_bfloat162 __hmul2(__hip_bfloat162 a, __hip_bfloat162 b) { return a * b; }
KS_INLINE __hip_bfloat162 __h2div(__hip_bfloat162 a, __hip_bfloat162 b) { return a / b; }

#define KS_BFLOAT_COMPARISON(op, name)                                                                                        \
  KS_HD constexpr bool operator op(const __hip_bfloat16& a, const __hip_bfloat16& b) { return float(a) op float(b); }         \
  KS_INLINE bool name(__hip_bfloat16 a, __hip_bfloat16 b) { return a op b; }
KS_BFLOAT_COMPARISON(==, __heq)
KS_BFLOAT_COMPARISON(!=, __hne)
KS_BFLOAT_COMPARISON(<, __hlt)
KS_BFLOAT_COMPARISON(<=, __hle)
KS_BFLOAT_COMPARISON(>, __hgt)
KS_BFLOAT_COMPARISON(>=, __hge)
#undef KS_BFLOAT_COMPARISON

KS_INLINE __hip_bfloat16 __hneg(__hip_bfloat16 x) { return -x; }
KS_INLINE __hip_bfloat162 __hneg2(__hip_bfloat162 x) { return -x; }
KS_INLINE __hip_bfloat16 __habs(__hip_bfloat16 x) { return __ushort_as_bfloat16(x.data & 0x7fffu); }
KS_INLINE __hip_bfloat162 __habs2(__hip_bfloat162 x) { return {__habs(x.x), __habs(x.y)}; }
KS_INLINE __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) { return __builtin_fmaxf(float(a), float(b)); }
KS_INLINE __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) { return __builtin_fminf(float(a), float(b)); }
KS_INLINE __hip_bfloat162 __hmax2(__hip_bfloat162 a, __hip_bfloat162 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
KS_INLINE __hip_bfloat162 __hmin2(__hip_bfloat162 a, __hip_bfloat162 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
KS_INLINE __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __builtin_fmaf(float(a), float(b), float(c));
}
KS_INLINE __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
KS_INLINE bool __hisnan(__hip_bfloat16 x) { return __builtin_isnan(float(x)); }
KS_INLINE int __hisinf(__hip_bfloat16 x) { return __builtin_isinf(float(x)) ? (float(x) > 0 ? 1 : -1) : 0; }

#define KS_BFLOAT_1(name, function)                                                               \
  KS_INLINE __hip_bfloat16 h##name(__hip_bfloat16 x) { return function(float(x)); }               \
  KS_INLINE __hip_bfloat162 h2##name(__hip_bfloat162 x) { return {h##name(x.x), h##name(x.y)}; }
KS_BFLOAT_1(exp, expf)
KS_BFLOAT_1(exp2, exp2f)
KS_BFLOAT_1(exp10, exp10f)
KS_BFLOAT_1(log, logf)
KS_BFLOAT_1(log2, log2f)
KS_BFLOAT_1(log10, log10f)
KS_BFLOAT_1(sin, sinf)
KS_BFLOAT_1(cos, cosf)
KS_BFLOAT_1(sqrt, sqrtf)
KS_BFLOAT_1(rsqrt, rsqrtf)
KS_BFLOAT_1(rcp, 1.0f /)
KS_BFLOAT_1(floor, floorf)
KS_BFLOAT_1(ceil, ceilf)
KS_BFLOAT_1(trunc, truncf)
KS_BFLOAT_1(rint, rintf)
#undef KS_BFLOAT_1
