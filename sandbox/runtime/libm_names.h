/* Functions of the host's C library that kernels may call, in the order of the jump table. */
#pragma once

#define KS_LIBM_FLOAT(X)                                                                             \
  X(acosf) X(acoshf) X(asinf) X(asinhf) X(atanf) X(atan2f) X(atanhf) X(cbrtf) X(ceilf) X(copysignf)  \
  X(cosf) X(coshf) X(erff) X(erfcf) X(expf) X(exp2f) X(exp10f) X(expm1f) X(fabsf) X(fdimf) X(floorf) \
  X(fmaf) X(fmaxf) X(fminf) X(fmodf) X(frexpf) X(hypotf) X(ilogbf) X(j0f) X(j1f) X(jnf) X(ldexpf)    \
  X(lgammaf) X(llrintf) X(llroundf) X(logf) X(log10f) X(log1pf) X(log2f) X(logbf) X(lrintf)          \
  X(lroundf) X(modff) X(nearbyintf) X(nextafterf) X(powf) X(remainderf) X(remquof) X(rintf)          \
  X(roundf) X(scalblnf) X(scalbnf) X(sincosf) X(sinf) X(sinhf) X(sqrtf) X(tanf) X(tanhf) X(tgammaf)  \
  X(truncf) X(y0f) X(y1f) X(ynf)

#define KS_LIBM_DOUBLE(X)                                                                            \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atan2) X(atanh) X(cbrt) X(ceil) X(copysign)            \
  X(cos) X(cosh) X(erf) X(erfc) X(exp) X(exp2) X(exp10) X(expm1) X(fabs) X(fdim) X(floor)            \
  X(fma) X(fmax) X(fmin) X(fmod) X(frexp) X(hypot) X(ilogb) X(j0) X(j1) X(jn) X(ldexp)               \
  X(lgamma) X(llrint) X(llround) X(log) X(log10) X(log1p) X(log2) X(logb) X(lrint)                   \
  X(lround) X(modf) X(nearbyint) X(nextafter) X(pow) X(remainder) X(remquo) X(rint)                  \
  X(round) X(scalbln) X(scalbn) X(sincos) X(sin) X(sinh) X(sqrt) X(tan) X(tanh) X(tgamma)            \
  X(trunc) X(y0) X(y1) X(yn)

#define KS_LIBM_MEMORY(X) X(memcpy) X(memmove) X(memset) X(memcmp)

#define KS_LIBM(X) KS_LIBM_FLOAT(X) KS_LIBM_DOUBLE(X) KS_LIBM_MEMORY(X)

#define KS_LIBM_ONE(name) +1
#define KS_LIBM_NAMES (0 KS_LIBM(KS_LIBM_ONE))
