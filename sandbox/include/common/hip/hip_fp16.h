// __half and __half2 with HIP's conversions, arithmetic and mathematics, over the compiler's _Float16.
//
// Every operation rounds to half precision once. The conversions named _rz, _ru and _rd round as they say.
#pragma once
#include <hip/hip_runtime.h>

struct __half_raw {
  unsigned short x;
};

struct __half {
  _Float16 data;

  __half() = default;
  KS_HD constexpr __half(_Float16 x) : data(x) {}
  template <class T>
    requires(__is_arithmetic(T) && !__is_same(T, _Float16))
  KS_HD constexpr __half(T x) : data(static_cast<_Float16>(x)) {}
  KS_HD constexpr __half(__half_raw raw) : data(__builtin_bit_cast(_Float16, raw.x)) {}

  KS_HD constexpr operator _Float16() const { return data; }
  template <class T>
    requires(__is_arithmetic(T) && !__is_same(T, _Float16))
  KS_HD constexpr operator T() const { return static_cast<T>(data); }
  KS_HD constexpr operator __half_raw() const { return {__builtin_bit_cast(unsigned short, data)}; }

  KS_HD constexpr __half operator-() const { return -data; }
  KS_HD constexpr __half& operator++() { return *this = __half(_Float16(data + _Float16(1))); }
  KS_HD constexpr __half& operator--() { return *this = __half(_Float16(data - _Float16(1))); }
};

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  KS_HD constexpr __half2(__half x, __half y) : x(x), y(y) {}
  KS_HD constexpr __half2(__half both) : x(both), y(both) {}

  KS_HD constexpr __half2 operator-() const { return {-x, -y}; }
};

typedef __half half;
typedef __half2 half2;

#define KS_HALF_ARITHMETIC(op)                                                                                     \
  KS_HD constexpr __half operator op(const __half& a, const __half& b) { return _Float16(a.data op b.data); }      \
  KS_HD constexpr __half& operator op##=(__half& a, const __half& b) { return a = a op b; }                        \
  KS_HD constexpr __half2 operator op(const __half2& a, const __half2& b) { return {a.x op b.x, a.y op b.y}; }     \
  KS_HD constexpr __half2& operator op##=(__half2& a, const __half2& b) { return a = a op b; }
KS_HALF_ARITHMETIC(+)
KS_HALF_ARITHMETIC(-)
KS_HALF_ARITHMETIC(*)
KS_HALF_ARITHMETIC(/)
#undef KS_HALF_ARITHMETIC

#define KS_HALF_COMPARISON(op, name, name2, pair_name)                                                             \
  KS_HD constexpr bool operator op(const __half& a, const __half& b) { return a.data op b.data; }                  \
  KS_INLINE bool name(__half a, __half b) { return a.data op b.data; }                                             \
  KS_INLINE __half2 name2(__half2 a, __half2 b) { return {__half(int(a.x op b.x)), __half(int(a.y op b.y))}; }     \
  KS_INLINE bool pair_name(__half2 a, __half2 b) { return a.x op b.x && a.y op b.y; }
KS_HALF_COMPARISON(==, __heq, __heq2, __hbeq2)
KS_HALF_COMPARISON(!=, __hne, __hne2, __hbne2)
KS_HALF_COMPARISON(<, __hlt, __hlt2, __hblt2)
KS_HALF_COMPARISON(<=, __hle, __hle2, __hble2)
KS_HALF_COMPARISON(>, __hgt, __hgt2, __hbgt2)
KS_HALF_COMPARISON(>=, __hge, __hge2, __hbge2)
#undef KS_HALF_COMPARISON

KS_INLINE unsigned short __half_as_ushort(__half x) { return ks_bits<unsigned short>(x); }
KS_INLINE short __half_as_short(__half x) { return ks_bits<short>(x); }
KS_INLINE __half __ushort_as_half(unsigned short x) { return ks_bits<__half>(x); }
KS_INLINE __half __short_as_half(short x) { return ks_bits<__half>(x); }

KS_INLINE __half __float2half(float x) { return _Float16(x); }
KS_INLINE __half __float2half_rn(float x) { return _Float16(x); }
KS_INLINE __half __double2half(double x) { return _Float16(x); }
KS_INLINE float __half2float(__half x) { return float(x.data); }

// The half next to `x`, by `step` in units of the last place away from zero (negative: towards it).
KS_INLINE __half ks_next_half(__half x, int step) { return __ushort_as_half(static_cast<unsigned short>(__half_as_ushort(x) + step)); }
KS_INLINE __half __float2half_rz(float x) {
  const __half nearest = _Float16(x);
  return __builtin_fabsf(float(nearest)) > __builtin_fabsf(x) ? ks_next_half(nearest, -1) : nearest;
}
KS_INLINE __half __float2half_ru(float x) {
  const __half nearest = _Float16(x);
  if (!(float(nearest) < x)) return nearest;
  return float(nearest) == 0.0f ? __ushort_as_half(1) : ks_next_half(nearest, float(nearest) > 0.0f ? 1 : -1);
}
KS_INLINE __half __float2half_rd(float x) { return -__float2half_ru(-x); }

#define KS_HALF_INTEGER(name, T)                                                                       \
  KS_INLINE T __half2##name##_rn(__half x) { return ks_to_integer<T>(__builtin_nearbyintf(float(x))); } \
  KS_INLINE T __half2##name##_rz(__half x) { return ks_to_integer<T>(__builtin_truncf(float(x))); }     \
  KS_INLINE T __half2##name##_ru(__half x) { return ks_to_integer<T>(__builtin_ceilf(float(x))); }      \
  KS_INLINE T __half2##name##_rd(__half x) { return ks_to_integer<T>(__builtin_floorf(float(x))); }     \
  KS_INLINE __half __##name##2half_rn(T x) { return _Float16(x); }                                      \
  KS_INLINE __half __##name##2half_rz(T x) { return __float2half_rz(float(x)); }
KS_HALF_INTEGER(int, int)
KS_HALF_INTEGER(uint, unsigned)
KS_HALF_INTEGER(short, short)
KS_HALF_INTEGER(ushort, unsigned short)
KS_HALF_INTEGER(ll, long long)
KS_HALF_INTEGER(ull, unsigned long long)
#undef KS_HALF_INTEGER

KS_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
KS_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
KS_INLINE __half2 __half2half2(__half x) { return {x, x}; }
KS_INLINE __half2 __float2half2_rn(float x) { return {__float2half(x), __float2half(x)}; }
KS_INLINE __half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
KS_INLINE __half2 __float22half2_rn(float2 x) { return {__float2half(x.x), __float2half(x.y)}; }
KS_INLINE float2 __half22float2(__half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
KS_INLINE __half __low2half(__half2 x) { return x.x; }
KS_INLINE __half __high2half(__half2 x) { return x.y; }
KS_INLINE float __low2float(__half2 x) { return __half2float(x.x); }
KS_INLINE float __high2float(__half2 x) { return __half2float(x.y); }
KS_INLINE __half2 __low2half2(__half2 x) { return {x.x, x.x}; }
KS_INLINE __half2 __high2half2(__half2 x) { return {x.y, x.y}; }
KS_INLINE __half2 __lows2half2(__half2 x, __half2 y) { return {x.x, y.x}; }
KS_INLINE __half2 __highs2half2(__half2 x, __half2 y) { return {x.y, y.y}; }
KS_INLINE __half2 __lowhigh2highlow(__half2 x) { return {x.y, x.x}; }

#define KS_HALF_2(name, expression)                                                             \
  KS_INLINE __half __h##name(__half a, __half b) { return expression; }                         \
  KS_INLINE __half2 __h##name##2(__half2 a, __half2 b) { return {__h##name(a.x, b.x), __h##name(a.y, b.y)}; }
KS_HALF_2(add, a + b)
KS_HALF_2(sub, a - b)
KS_HALF_2(mul, a * b)
KS_HALF_2(add_rn, a + b)
KS_HALF_2(sub_rn, a - b)
KS_HALF_2(mul_rn, a * b)
KS_HALF_2(add_sat, __half(saturatef(float(a + b))))
KS_HALF_2(sub_sat, __half(saturatef(float(a - b))))
KS_HALF_2(mul_sat, __half(saturatef(float(a * b))))
KS_HALF_2(max, __half(__builtin_fmaxf(float(a), float(b))))
KS_HALF_2(min, __half(__builtin_fminf(float(a), float(b))))
#undef KS_HALF_2
KS_INLINE __half __hdiv(__half a, __half b) { return a / b; }
KS_INLINE __half2 __h2div(__half2 a, __half2 b) { return a / b; }
KS_INLINE __half __hneg(__half x) { return -x; }
KS_INLINE __half2 __hneg2(__half2 x) { return -x; }
KS_INLINE __half __habs(__half x) { return __ushort_as_half(__half_as_ushort(x) & 0x7fffu); }
KS_INLINE __half2 __habs2(__half2 x) { return {__habs(x.x), __habs(x.y)}; }
KS_INLINE __half __hfma(__half a, __half b, __half c) {
#ifdef KS_CPU  // where the builtin may round in single precision first
  return _Float16(__builtin_fma(double(a), double(b), double(c)));
#else
  return __builtin_fmaf16(a.data, b.data, c.data);
#endif
}
KS_INLINE __half __hfma_relu(__half a, __half b, __half c) { return __hmax(__hfma(a, b, c), __half(0)); }
KS_INLINE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
KS_INLINE bool __hisnan(__half x) { return __builtin_isnan(float(x)); }
KS_INLINE int __hisinf(__half x) { return __builtin_isinf(float(x)) ? (float(x) > 0 ? 1 : -1) : 0; }
KS_INLINE __half2 __hisnan2(__half2 x) { return {__half(int(__hisnan(x.x))), __half(int(__hisnan(x.y)))}; }

#define KS_HALF_1(name, function)                                                 \
  KS_INLINE __half h##name(__half x) { return _Float16(function(float(x))); }     \
  KS_INLINE __half2 h2##name(__half2 x) { return {h##name(x.x), h##name(x.y)}; }
KS_HALF_1(exp, expf)
KS_HALF_1(exp2, exp2f)
KS_HALF_1(exp10, exp10f)
KS_HALF_1(log, logf)
KS_HALF_1(log2, log2f)
KS_HALF_1(log10, log10f)
KS_HALF_1(sin, sinf)
KS_HALF_1(cos, cosf)
KS_HALF_1(tanh, tanhf)
KS_HALF_1(sqrt, sqrtf)
KS_HALF_1(rsqrt, rsqrtf)
KS_HALF_1(rcp, 1.0f /)
KS_HALF_1(floor, floorf)
KS_HALF_1(ceil, ceilf)
KS_HALF_1(trunc, truncf)
KS_HALF_1(rint, rintf)
#undef KS_HALF_1
