// Mathematics on an AMD GPU without ROCm's device libraries: the builtins that LLVM cannot turn into instructions
// there are given a definition here, and <ks/math.h> is written over builtins. (LLVM lowers exp, exp2, exp10, log,
// log2, log10 and sqrt in single precision itself; the Bessel functions are left out.)
#pragma once
#include <ks/libm_float.h>

#define __builtin_exp ks_exp
#define __builtin_exp2 ks_exp2
#define __builtin_exp10 ks_exp10
#define __builtin_log ks_log
#define __builtin_log2 ks_log2
#define __builtin_log10 ks_log10
#define __builtin_acos ks_acos
#define __builtin_acosf ks_acosf
#define __builtin_acosh ks_acosh
#define __builtin_acoshf ks_acoshf
#define __builtin_asin ks_asin
#define __builtin_asinf ks_asinf
#define __builtin_asinh ks_asinh
#define __builtin_asinhf ks_asinhf
#define __builtin_atan ks_atan
#define __builtin_atanf ks_atanf
#define __builtin_atanh ks_atanh
#define __builtin_atanhf ks_atanhf
#define __builtin_cbrt ks_cbrt
#define __builtin_cbrtf ks_cbrtf
#define __builtin_cos ks_cos
#define __builtin_cosf ks_cosf
#define __builtin_cosh ks_cosh
#define __builtin_coshf ks_coshf
#define __builtin_erf ks_erf
#define __builtin_erff ks_erff
#define __builtin_erfc ks_erfc
#define __builtin_erfcf ks_erfcf
#define __builtin_expm1 ks_expm1
#define __builtin_expm1f ks_expm1f
#define __builtin_ilogb ks_ilogb
#define __builtin_ilogbf ks_ilogbf
#define __builtin_lgamma ks_lgamma
#define __builtin_lgammaf ks_lgammaf
#define __builtin_log1p ks_log1p
#define __builtin_log1pf ks_log1pf
#define __builtin_sin ks_sin
#define __builtin_sinf ks_sinf
#define __builtin_sinh ks_sinh
#define __builtin_sinhf ks_sinhf
#define __builtin_tan ks_tan
#define __builtin_tanf ks_tanf
#define __builtin_tanh ks_tanh
#define __builtin_tanhf ks_tanhf
#define __builtin_tgamma ks_tgamma
#define __builtin_tgammaf ks_tgammaf
#define __builtin_atan2 ks_atan2
#define __builtin_atan2f ks_atan2f
#define __builtin_fdim ks_fdim
#define __builtin_fdimf ks_fdimf
#define __builtin_hypot ks_hypot
#define __builtin_hypotf ks_hypotf
#define __builtin_modf ks_modf
#define __builtin_modff ks_modff
#define __builtin_nextafter ks_nextafter
#define __builtin_nextafterf ks_nextafterf
#define __builtin_pow ks_pow
#define __builtin_powf ks_powf
#define __builtin_remainder ks_remainder
#define __builtin_remainderf ks_remainderf
#define __builtin_remquo ks_remquo
#define __builtin_remquof ks_remquof

#define __builtin_scalbn(x, n) __builtin_ldexp(x, n)
#define __builtin_scalbnf(x, n) __builtin_ldexpf(x, n)
#define __builtin_scalbln(x, n) __builtin_ldexp(x, ks_clamped(n))
#define __builtin_scalblnf(x, n) __builtin_ldexpf(x, ks_clamped(n))
KS_INLINE int ks_clamped(long n) { return n > 100000 ? 100000 : n < -100000 ? -100000 : int(n); }

KS_INLINE double exp10(double x) { return ks_exp10(x); }
KS_INLINE float exp10f(float x) { return __builtin_exp10f(x); }
KS_INLINE void sincos(double x, double* sine, double* cosine) { ks_sincos(x, sine, cosine); }
KS_INLINE void sincosf(float x, float* sine, float* cosine) { ks_sincosf(x, sine, cosine); }
