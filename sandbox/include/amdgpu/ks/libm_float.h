// Single-precision functions that LLVM does not lower for AMD GPUs by itself; see libm_double.h.
//
// tanh, erf and expm1 are polynomials fitted here for the least largest relative error (within 2 ulp); what a kernel
// seldom needs goes through double precision, and so do pow and the reduction of angles, for their accuracy.
#pragma once
#include <ks/libm_double.h>

template <int N> KS_INLINE float ks_polynomial(float x, const float (&c)[N]) {
  float p = c[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; i--) p = __builtin_fmaf(p, x, c[i]);
  return p;
}

KS_INLINE float ks_expm1f(float x) {
  constexpr float c[] = {0.5f, 0.166666672f, 0.0416666679f, 0.00833318196f, 0.00138886075f, 0.000199621849f, 2.49570385e-05f};
  return __builtin_fabsf(x) < 0.5f ? __builtin_fmaf(x * x, ks_polynomial(x, c), x) : __builtin_expf(x) - 1.0f;
}

KS_INLINE float ks_log1pf(float x) {
  const float u = 1.0f + x;
  if (u <= 0.0f) return u == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  if (u == 1.0f || __builtin_isinf(u)) return x;
  return __builtin_logf(u) + (x - (u - 1.0f)) / u;
}

KS_INLINE float ks_tanhf(float x) {
  constexpr float c[] = {-0.333333343f, 0.133333042f, -0.0539595485f, 0.0217709765f, -0.00834995974f, 0.00229889574f};
  const float a = __builtin_fabsf(x), z = a * a;
  const float small = __builtin_fmaf(a * z, ks_polynomial(z, c), a);
  const float large = 1.0f - 2.0f / (__builtin_expf(2.0f * a) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? small : large, x);
}

KS_INLINE float ks_erff(float x) {
  constexpr float near[] = {0.128379166f, -0.37612626f, 0.112836003f, -0.0268544443f, 0.00518953521f, -0.00080208393f, 7.88911275e-05f};
  // -log(erfc(x)) on [1, 4]; beyond, erf is 1 in single precision.
  constexpr float far[] = {-0.000291026779f, 1.13011968f, 0.63201344f, 0.109909736f, -0.0263275262f,
                           0.00472768955f, -0.000590203446f, 4.52981221e-05f, -1.59982062e-06f};
  const float a = __builtin_fabsf(x), z = a * a;
  const float small = __builtin_fmaf(a, ks_polynomial(z, near), a);
  const float large = 1.0f - __builtin_expf(-ks_polynomial(a > 4.0f ? 4.0f : a, far));
  return __builtin_copysignf(a < 1.0f ? small : a == a ? large : a, x);
}

KS_INLINE float ks_powf(float x, float y) { return float(ks_pow(double(x), double(y))); }
KS_INLINE float ks_sinf(float x) { return float(ks_sin(double(x))); }
KS_INLINE float ks_cosf(float x) { return float(ks_cos(double(x))); }
KS_INLINE void ks_sincosf(float x, float* sine, float* cosine) {
  double s, c;
  ks_sincos(double(x), &s, &c);
  *sine = float(s), *cosine = float(c);
}

#define KS_THROUGH_DOUBLE(name) \
  KS_INLINE float ks_##name##f(float x) { return float(ks_##name(double(x))); }
KS_THROUGH_DOUBLE(acos)
KS_THROUGH_DOUBLE(acosh)
KS_THROUGH_DOUBLE(asin)
KS_THROUGH_DOUBLE(asinh)
KS_THROUGH_DOUBLE(atan)
KS_THROUGH_DOUBLE(atanh)
KS_THROUGH_DOUBLE(cbrt)
KS_THROUGH_DOUBLE(cosh)
KS_THROUGH_DOUBLE(erfc)
KS_THROUGH_DOUBLE(lgamma)
KS_THROUGH_DOUBLE(sinh)
KS_THROUGH_DOUBLE(tan)
KS_THROUGH_DOUBLE(tgamma)
#undef KS_THROUGH_DOUBLE

KS_INLINE float ks_atan2f(float y, float x) { return float(ks_atan2(double(y), double(x))); }
KS_INLINE float ks_hypotf(float x, float y) { return float(ks_hypot(double(x), double(y))); }
KS_INLINE float ks_fdimf(float x, float y) { return x <= y ? 0.0f : x - y; }
KS_INLINE float ks_remainderf(float x, float y) { return float(ks_remainder(double(x), double(y))); }
KS_INLINE float ks_remquof(float x, float y, int* quotient) { return float(ks_remquo(double(x), double(y), quotient)); }
KS_INLINE float ks_nextafterf(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0f) return __builtin_copysignf(0x1p-149f, y);
  const int bits = __builtin_bit_cast(int, x);
  return __builtin_bit_cast(float, (x < y) == (x > 0.0f) ? bits + 1 : bits - 1);
}
KS_INLINE float ks_modff(float x, float* whole) {
  *whole = __builtin_truncf(x);
  return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - *whole, x);
}
KS_INLINE int ks_ilogbf(float x) { return ks_ilogb(double(x)); }
