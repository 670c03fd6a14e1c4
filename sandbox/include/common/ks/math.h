// The mathematics of HIP device code: the C library's functions, HIP's fast and directed-rounding names, and
// C++ overloads. The builtins let the compiler fold constants and use instructions; what it cannot do itself
// each target supplies in its own <ks/libm.h>.
//
// The names with _rz, _ru and _rd round to nearest here as the plain ones do.
#pragma once
#include <ks/libm.h>

// The constants of <math.h>, which ROCm's headers bring along.
#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
#ifndef NAN
#define NAN __builtin_nanf("")
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif

#define KS_MATH_1(X)                                                                                              \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cbrt) X(ceil) X(cos) X(cosh) X(erf) X(erfc) X(exp) X(exp2) \
  X(expm1) X(fabs) X(floor) X(lgamma) X(log) X(log10) X(log1p) X(log2) X(logb) X(nearbyint) X(rint) X(round)      \
  X(sin) X(sinh) X(sqrt) X(tan) X(tanh) X(tgamma) X(trunc)
#define KS_MATH_2(X) \
  X(atan2) X(copysign) X(fdim) X(fmax) X(fmin) X(fmod) X(hypot) X(nextafter) X(pow) X(remainder)

#define KS_DEFINE_1(name)                                                      \
  KS_INLINE double name(double x) { return __builtin_##name(x); }              \
  KS_INLINE float name##f(float x) { return __builtin_##name##f(x); }          \
  KS_INLINE float name(float x) { return __builtin_##name##f(x); }             \
  template <class I> requires(__is_integral(I)) KS_INLINE double name(I x) { return __builtin_##name(double(x)); }
#define KS_DEFINE_2(name)                                                                 \
  KS_INLINE double name(double x, double y) { return __builtin_##name(x, y); }            \
  KS_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); }         \
  KS_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }            \
  template <class A, class B> requires(__is_arithmetic(A) && __is_arithmetic(B) && !__is_same(A, B)) \
  KS_INLINE double name(A x, B y) { return __builtin_##name(double(x), double(y)); }

KS_MATH_1(KS_DEFINE_1)
KS_MATH_2(KS_DEFINE_2)
#undef KS_DEFINE_1
#undef KS_DEFINE_2
#undef KS_MATH_1
#undef KS_MATH_2

// Names that take or return more than their own type.
#define KS_BOTH(result, name, float_arguments, double_arguments, call)                              \
  KS_INLINE result name double_arguments { return __builtin_##name call; }                          \
  KS_INLINE result name##f float_arguments { return __builtin_##name##f call; }                     \
  KS_INLINE result name float_arguments { return __builtin_##name##f call; }
KS_BOTH(int, ilogb, (float x), (double x), (x))
KS_BOTH(long, lrint, (float x), (double x), (x))
KS_BOTH(long, lround, (float x), (double x), (x))
KS_BOTH(long long, llrint, (float x), (double x), (x))
KS_BOTH(long long, llround, (float x), (double x), (x))
#undef KS_BOTH
#define KS_OWN(name, float_arguments, double_arguments, call)                                       \
  KS_INLINE double name double_arguments { return __builtin_##name call; }                          \
  KS_INLINE float name##f float_arguments { return __builtin_##name##f call; }                      \
  KS_INLINE float name float_arguments { return __builtin_##name##f call; }
KS_OWN(fma, (float x, float y, float z), (double x, double y, double z), (x, y, z))
KS_OWN(ldexp, (float x, int n), (double x, int n), (x, n))
KS_OWN(scalbn, (float x, int n), (double x, int n), (x, n))
KS_OWN(scalbln, (float x, long n), (double x, long n), (x, n))
KS_OWN(frexp, (float x, int* n), (double x, int* n), (x, n))
KS_OWN(modf, (float x, float* whole), (double x, double* whole), (x, whole))
KS_OWN(remquo, (float x, float y, int* n), (double x, double y, int* n), (x, y, n))
#undef KS_OWN

KS_INLINE float pow(float x, int n) { return __builtin_powf(x, float(n)); }
KS_INLINE double pow(double x, int n) { return __builtin_pow(x, double(n)); }
KS_INLINE float powif(float x, int n) { return __builtin_powf(x, float(n)); }
KS_INLINE double powi(double x, int n) { return __builtin_pow(x, double(n)); }

template <class T> requires(__is_floating_point(T)) KS_INLINE bool isnan(T x) { return __builtin_isnan(x); }
template <class T> requires(__is_floating_point(T)) KS_INLINE bool isinf(T x) { return __builtin_isinf(x); }
template <class T> requires(__is_floating_point(T)) KS_INLINE bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> requires(__is_floating_point(T)) KS_INLINE bool signbit(T x) { return __builtin_signbit(x); }

KS_INLINE int abs(int x) { return x < 0 ? -x : x; }
KS_INLINE long abs(long x) { return x < 0 ? -x : x; }
KS_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
KS_INLINE float abs(float x) { return __builtin_fabsf(x); }
KS_INLINE double abs(double x) { return __builtin_fabs(x); }
KS_INLINE long labs(long x) { return x < 0 ? -x : x; }
KS_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }

KS_INLINE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
KS_INLINE float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
KS_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
KS_INLINE float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
KS_INLINE double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
KS_INLINE float rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
KS_INLINE double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
KS_INLINE float norm3df(float x, float y, float z) { return __builtin_sqrtf(x * x + y * y + z * z); }
KS_INLINE double norm3d(double x, double y, double z) { return __builtin_sqrt(x * x + y * y + z * z); }
KS_INLINE float saturatef(float x) { return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f); }
KS_INLINE float sinpif(float x) { return __builtin_sinf(float(x * 3.14159265358979323846)); }
KS_INLINE double sinpi(double x) { return __builtin_sin(x * 3.14159265358979323846); }
KS_INLINE float cospif(float x) { return __builtin_cosf(float(x * 3.14159265358979323846)); }
KS_INLINE double cospi(double x) { return __builtin_cos(x * 3.14159265358979323846); }
KS_INLINE float normcdff(float x) { return 0.5f * __builtin_erfcf(-0.70710678118654752f * x); }
KS_INLINE double normcdf(double x) { return 0.5 * __builtin_erfc(-0.70710678118654752 * x); }
KS_INLINE float fdividef(float x, float y) { return x / y; }

KS_INLINE float __expf(float x) { return __builtin_expf(x); }
KS_INLINE float __exp10f(float x) { return exp10f(x); }
KS_INLINE float __logf(float x) { return __builtin_logf(x); }
KS_INLINE float __log2f(float x) { return __builtin_log2f(x); }
KS_INLINE float __log10f(float x) { return __builtin_log10f(x); }
KS_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
KS_INLINE float __sinf(float x) { return __builtin_sinf(x); }
KS_INLINE float __cosf(float x) { return __builtin_cosf(x); }
KS_INLINE float __tanf(float x) { return __builtin_tanf(x); }
KS_INLINE void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
KS_INLINE float __saturatef(float x) { return saturatef(x); }
KS_INLINE float __fdividef(float x, float y) { return x / y; }
KS_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }

#define KS_ROUNDED(mode)                                                                            \
  KS_INLINE float __fadd_##mode(float x, float y) { return x + y; }                                 \
  KS_INLINE float __fsub_##mode(float x, float y) { return x - y; }                                 \
  KS_INLINE float __fmul_##mode(float x, float y) { return x * y; }                                 \
  KS_INLINE float __fdiv_##mode(float x, float y) { return x / y; }                                 \
  KS_INLINE float __frcp_##mode(float x) { return 1.0f / x; }                                       \
  KS_INLINE float __fsqrt_##mode(float x) { return __builtin_sqrtf(x); }                            \
  KS_INLINE float __fmaf_##mode(float x, float y, float z) { return __builtin_fmaf(x, y, z); }      \
  KS_INLINE double __dadd_##mode(double x, double y) { return x + y; }                              \
  KS_INLINE double __dsub_##mode(double x, double y) { return x - y; }                              \
  KS_INLINE double __dmul_##mode(double x, double y) { return x * y; }                              \
  KS_INLINE double __ddiv_##mode(double x, double y) { return x / y; }                              \
  KS_INLINE double __drcp_##mode(double x) { return 1.0 / x; }                                      \
  KS_INLINE double __dsqrt_##mode(double x) { return __builtin_sqrt(x); }                           \
  KS_INLINE double __fma_##mode(double x, double y, double z) { return __builtin_fma(x, y, z); }
KS_ROUNDED(rn)
KS_ROUNDED(rz)
KS_ROUNDED(ru)
KS_ROUNDED(rd)
#undef KS_ROUNDED

// min and max of mixed arithmetic types, in their common type.
template <class A, class B>
  requires(__is_arithmetic(A) && __is_arithmetic(B))
KS_INLINE auto min(A a, B b) {
  using C = decltype(a + b);
  if constexpr (__is_floating_point(C)) return sizeof(C) == 8 ? C(__builtin_fmin(a, b)) : C(__builtin_fminf(float(a), float(b)));
  else return C(b) < C(a) ? C(b) : C(a);
}
template <class A, class B>
  requires(__is_arithmetic(A) && __is_arithmetic(B))
KS_INLINE auto max(A a, B b) {
  using C = decltype(a + b);
  if constexpr (__is_floating_point(C)) return sizeof(C) == 8 ? C(__builtin_fmax(a, b)) : C(__builtin_fmaxf(float(a), float(b)));
  else return C(a) < C(b) ? C(b) : C(a);
}
