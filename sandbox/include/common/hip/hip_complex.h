// Complex numbers as HIP has them: pairs of float or double, and functions on them.
#pragma once
#include <hip/hip_runtime.h>

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

#define KS_COMPLEX(T, Complex, Name, f)                                                                         \
  KS_INLINE Complex make_##Name(T x, T y) { return {x, y}; }                                                    \
  KS_INLINE T hipCreal##f(Complex z) { return z.x; }                                                            \
  KS_INLINE T hipCimag##f(Complex z) { return z.y; }                                                            \
  KS_INLINE Complex hipConj##f(Complex z) { return {z.x, -z.y}; }                                               \
  KS_INLINE T hipCsqabs##f(Complex z) { return z.x * z.x + z.y * z.y; }                                         \
  KS_INLINE T hipCabs##f(Complex z) { return hypot(z.x, z.y); }                                                 \
  KS_INLINE Complex hipCadd##f(Complex p, Complex q) { return {p.x + q.x, p.y + q.y}; }                         \
  KS_INLINE Complex hipCsub##f(Complex p, Complex q) { return {p.x - q.x, p.y - q.y}; }                         \
  KS_INLINE Complex hipCmul##f(Complex p, Complex q) { return {p.x * q.x - p.y * q.y, p.y * q.x + p.x * q.y}; } \
  KS_INLINE Complex hipCdiv##f(Complex p, Complex q) {                                                          \
    const T size = hipCsqabs##f(q);                                                                             \
    return {(p.x * q.x + p.y * q.y) / size, (p.y * q.x - p.x * q.y) / size};                                    \
  }                                                                                                             \
  KS_INLINE Complex hipCfma##f(Complex p, Complex q, Complex r) { return hipCadd##f(hipCmul##f(p, q), r); }
KS_COMPLEX(float, hipFloatComplex, hipFloatComplex, f)
KS_COMPLEX(double, hipDoubleComplex, hipDoubleComplex, )
#undef KS_COMPLEX

KS_INLINE hipComplex make_hipComplex(float x, float y) { return {x, y}; }
KS_INLINE hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) { return {float(z.x), float(z.y)}; }
KS_INLINE hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) { return {z.x, z.y}; }
