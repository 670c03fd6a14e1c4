// Double-precision functions that LLVM does not lower for AMD GPUs by itself, where ROCm's device libraries would
// be linked. Plain C++ over builtins that are instructions there, so that a test can run it on the host.
//
// Accuracy: 2 ulp or better for exp, log, sin and cos (|x| < 2^30); 8 ulp for pow, erf, the inverse and the
// hyperbolic functions; 1e-12 for erfc and the gamma functions (lgamma: absolute). Methods are the textbook ones: reduction by ln 2 or pi/2 in two or three parts
// (Cody and Waite), Taylor or atanh series on what is left, Lanczos' formula for gamma.
#pragma once

KS_INLINE double ks_exp_reduced(double r) {
  constexpr double c[] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                          1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  double p = c[13];
#pragma unroll
  for (int i = 12; i >= 0; i--) p = __builtin_fma(p, r, c[i]);
  return p;
}

KS_INLINE double ks_scale(double p, double n) {
  // Two steps: 2^n alone may be out of range where the product is not.
  const int whole = int(n), half = whole / 2;
  return __builtin_ldexp(__builtin_ldexp(p, half), whole - half);
}

// exp(x + low), `low` being far smaller than x.
KS_INLINE double ks_exp_sum(double x, double low) {
  const double clamped = __builtin_fmin(__builtin_fmax(x, -760.0), 720.0);
  const double n = __builtin_rint(clamped * 0x1.71547652b82fep+0);
  double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, clamped);
  r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r) + low;
  const double result = ks_scale(ks_exp_reduced(r), n);
  return x != x ? x : result;
}

KS_INLINE double ks_exp(double x) { return ks_exp_sum(x, 0.0); }

KS_INLINE double ks_exp2(double x) {
  const double clamped = __builtin_fmin(__builtin_fmax(x, -1090.0), 1030.0);
  const double n = __builtin_rint(clamped);
  const double result = ks_scale(ks_exp_reduced((clamped - n) * 0x1.62e42fefa39efp-1), n);
  return x != x ? x : result;
}

KS_INLINE double ks_exp10(double x) {
  const double high = x * 0x1.26bb1bbb55516p+1;
  const double low = __builtin_fma(x, 0x1.26bb1bbb55516p+1, -high) + x * -0x1.f48ad494ea3e9p-53;
  return ks_exp_sum(high, __builtin_isfinite(high) ? low : 0.0);
}

struct KsPair {
  double high, low;
};

// log of a positive finite x as the sum of a double and a correction.
KS_INLINE KsPair ks_log_pair(double x) {
  int exponent = 0;
  double m = __builtin_frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2.0, exponent -= 1;
  const double f = m - 1.0, d = m + 1.0, d_low = m - (d - 1.0);
  const double s = f / d;
  const double s_low = (__builtin_fma(-s, d, f) - s * d_low) / d;
  const double z = s * s;
  double p = 1.0 / 25;
#pragma unroll
  for (int k = 23; k >= 3; k -= 2) p = __builtin_fma(p, z, 1.0 / k);
  const double e = exponent;
  const double top = e * 0x1.62e42fefa39efp-1, top_low = __builtin_fma(e, 0x1.62e42fefa39efp-1, -top);
  const double high = top + 2.0 * s;
  // Either part may be the larger one.
  const double shadow = high - top, rest = (top - (high - shadow)) + (2.0 * s - shadow);
  return {high, rest + (top_low + __builtin_fma(e, 0x1.abc9e3b39803fp-56, 2.0 * (s_low + s * z * p)))};
}

KS_INLINE double ks_log_special(double x, double result) {
  if (x == 0.0) return -__builtin_inf();
  if (x < 0.0) return __builtin_nan("");
  return __builtin_isfinite(x) ? result : x;
}

KS_INLINE double ks_log(double x) {
  const KsPair l = ks_log_pair(x);
  return ks_log_special(x, l.high + l.low);
}

KS_INLINE double ks_log_scaled(double x, double scale, double scale_low) {
  const KsPair l = ks_log_pair(x);
  const double high = l.high * scale, low = __builtin_fma(l.high, scale, -high) + (l.low * scale + l.high * scale_low);
  return ks_log_special(x, high + low);
}
KS_INLINE double ks_log2(double x) { return ks_log_scaled(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56); }
KS_INLINE double ks_log10(double x) { return ks_log_scaled(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57); }

KS_INLINE double ks_pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return x + y;
  const double magnitude = __builtin_fabs(x);
  const bool whole = __builtin_rint(y) == y;
  const bool odd = whole && __builtin_fabs(y) < 0x1p53 && (static_cast<long long>(y) & 1);
  double result;
  if (magnitude == 0.0) {
    result = y > 0.0 ? 0.0 : __builtin_inf();
  } else if (!__builtin_isfinite(magnitude)) {
    result = y > 0.0 ? __builtin_inf() : 0.0;
  } else if (!__builtin_isfinite(y)) {
    if (magnitude == 1.0) return 1.0;
    return (magnitude > 1.0) == (y > 0.0) ? __builtin_inf() : 0.0;
  } else {
    const KsPair l = ks_log_pair(magnitude);
    const double high = y * l.high, low = __builtin_fma(y, l.high, -high) + y * l.low;
    result = ks_exp_sum(high, __builtin_fabs(high) < 800.0 ? low : 0.0);
  }
  if (__builtin_signbit(x) && odd) return -result;
  if (x < 0.0 && !whole && __builtin_isfinite(x)) return __builtin_nan("");
  return result;
}

KS_INLINE double ks_expm1(double x) {
  if (__builtin_fabs(x) >= 0.5) return ks_exp(x) - 1.0;
  double p = 1.0 / 1307674368000.0;
  double factorial = 1307674368000.0;
#pragma unroll
  for (int k = 15; k > 2; k--) factorial /= k, p = __builtin_fma(p, x, 1.0 / factorial);
  return __builtin_fma(x * x, p, x);
}

KS_INLINE double ks_log1p(double x) {
  const double u = 1.0 + x;
  if (u <= 0.0) return u == 0.0 ? -__builtin_inf() : __builtin_nan("");
  if (u == 1.0 || !__builtin_isfinite(u)) return x;
  return ks_log(u) + (x - (u - 1.0)) / u;
}

struct KsQuadrant {
  double r, r_low;
  int quadrant;
};

KS_INLINE KsQuadrant ks_reduce_angle(double x) {
  const double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);
  const double a = __builtin_fma(-n, 0x1.921fb54442d18p+0, x);
  const double t = n * 0x1.1a62633145c07p-54, t_low = __builtin_fma(n, 0x1.1a62633145c07p-54, -t);
  const double r = a - t;
  // Beyond 2^30 the parts of pi/2 are too few to tell the phase; the result stays in range.
  if (__builtin_fabs(x) > 0x1p30) return {0.0, 0.0, 0};
  return {r, (a - r) - t - t_low, int(static_cast<long long>(n) & 3)};
}

KS_INLINE double ks_sin_reduced(double r, double low) {
  constexpr double c[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0,
                          -1.0 / 1307674368000.0, 1.0 / 355687428096000.0};
  const double z = r * r;
  double p = c[7];
#pragma unroll
  for (int i = 6; i >= 0; i--) p = __builtin_fma(p, z, c[i]);
  return r + __builtin_fma(r * z, p, low * (1.0 - 0.5 * z));
}

KS_INLINE double ks_cos_reduced(double r, double low) {
  constexpr double c[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0,
                          1.0 / 20922789888000.0};
  const double z = r * r, half = 0.5 * z, w = 1.0 - half;
  double p = c[6];
#pragma unroll
  for (int i = 5; i >= 0; i--) p = __builtin_fma(p, z, c[i]);
  return w + (((1.0 - w) - half) + __builtin_fma(z * z, p, -r * low));
}

KS_INLINE void ks_sincos(double x, double* sine, double* cosine) {
  const KsQuadrant q = ks_reduce_angle(x);
  const double s = ks_sin_reduced(q.r, q.r_low), c = ks_cos_reduced(q.r, q.r_low);
  const double a = q.quadrant & 1 ? c : s, b = q.quadrant & 1 ? s : c;
  *sine = !__builtin_isfinite(x) ? __builtin_nan("") : q.quadrant & 2 ? -a : a;
  *cosine = !__builtin_isfinite(x) ? __builtin_nan("") : (q.quadrant + 1) & 2 ? -b : b;
}
KS_INLINE double ks_sin(double x) {
  double s, c;
  ks_sincos(x, &s, &c);
  return s;
}
KS_INLINE double ks_cos(double x) {
  double s, c;
  ks_sincos(x, &s, &c);
  return c;
}
KS_INLINE double ks_tan(double x) {
  double s, c;
  ks_sincos(x, &s, &c);
  return s / c;
}

KS_INLINE double ks_atan(double x) {
  double a = __builtin_fabs(x), base = 0.0, sign = 1.0;
  if (a > 1.0) a = 1.0 / a, base = 0x1.921fb54442d18p+0, sign = -1.0;
  if (a > 0.41421356237309503) {
    a = (a - 1.0) / (a + 1.0);
    base += sign * 0x1.921fb54442d18p-1;
  }
  const double z = a * a;
  double p = 0.0;
#pragma unroll
  for (int k = 43; k >= 3; k -= 2) p = __builtin_fma(p, z, (k & 2 ? -1.0 : 1.0) / k);
  return __builtin_copysign(base + sign * __builtin_fma(a * z, p, a), x);
}

KS_INLINE double ks_atan2(double y, double x) {
  if (x != x || y != y) return x + y;
  const double pi = 0x1.921fb54442d18p+1;
  const double ay = __builtin_fabs(y), ax = __builtin_fabs(x);
  double a;
  if (ay == 0.0) a = 0.0;
  else if (__builtin_isinf(ax) && __builtin_isinf(ay)) a = 0.25 * pi;
  else a = ay > ax ? 0.5 * pi - ks_atan(ax / ay) : ks_atan(ay / ax);
  if (__builtin_signbit(x)) a = pi - a;
  return __builtin_copysign(a, y);
}
KS_INLINE double ks_asin(double x) { return ks_atan2(x, __builtin_sqrt((1.0 - x) * (1.0 + x))); }
KS_INLINE double ks_acos(double x) { return ks_atan2(__builtin_sqrt((1.0 - x) * (1.0 + x)), x); }

KS_INLINE double ks_sinh(double x) {
  const double a = __builtin_fabs(x);
  double h;
  if (a < 22.0) {
    const double e = ks_expm1(a);
    h = 0.5 * (e + e / (e + 1.0));
  } else {
    const double root = ks_exp(0.5 * a);
    h = 0.5 * root * root;
  }
  return __builtin_copysign(h, x);
}
KS_INLINE double ks_cosh(double x) {
  const double root = ks_exp(0.5 * __builtin_fabs(x));
  return 0.5 * root * root + 0.5 / (root * root);
}
KS_INLINE double ks_tanh(double x) {
  const double e = ks_expm1(-2.0 * __builtin_fabs(x));
  return __builtin_copysign(-e / (e + 2.0), x);
}
KS_INLINE double ks_asinh(double x) {
  const double a = __builtin_fabs(x);
  const double h = a > 0x1p28 ? ks_log(a) + 0x1.62e42fefa39efp-1 : ks_log1p(a + a * a / (1.0 + __builtin_sqrt(a * a + 1.0)));
  return __builtin_copysign(h, x);
}
KS_INLINE double ks_acosh(double x) {
  const double t = x - 1.0;
  if (!(x >= 1.0)) return __builtin_nan("");
  return x > 0x1p28 ? ks_log(x) + 0x1.62e42fefa39efp-1 : ks_log1p(t + __builtin_sqrt(2.0 * t + t * t));
}
KS_INLINE double ks_atanh(double x) {
  const double a = __builtin_fabs(x);
  if (!(a <= 1.0)) return __builtin_nan("");
  return __builtin_copysign(0.5 * ks_log1p(2.0 * a / (1.0 - a)), x);
}

KS_INLINE double ks_cbrt(double x) {
  const double a = __builtin_fabs(x);
  if (a == 0.0 || !__builtin_isfinite(a)) return x;
  double y = ks_exp(ks_log(a) / 3.0);
  // One Newton step with the residual kept exact to first order.
  const double square = y * y, low = __builtin_fma(y, y, -square);
  y -= __builtin_fma(square, y, -a) / (3.0 * square) + low * y / (3.0 * square);
  return __builtin_copysign(y, x);
}

// erf's series for small arguments, the continued fraction of erfc (evaluated backwards) for large ones.
KS_INLINE double ks_erf_series(double x) {
  double term = x, sum = x;
  for (int n = 1; n < 60; n++) {
    term *= 2.0 * x * x / (2 * n + 1);
    sum += term;
  }
  return 0x1.20dd750429b6dp+0 * ks_exp(-x * x) * sum;
}
KS_INLINE double ks_erfc_fraction(double x) {
  const double square = x * x, low = __builtin_fma(x, x, -square);
  double f = x;
  for (int n = 60; n >= 1; n--) f = x + 0.5 * n / f;
  return ks_exp_sum(-square, -low) / (f * 0x1.c5bf891b4ef6bp+0);
}
KS_INLINE double ks_erf(double x) {
  const double a = __builtin_fabs(x);
  if (x != x) return x;
  return __builtin_copysign(a < 2.0 ? ks_erf_series(a) : a < 6.0 ? 1.0 - ks_erfc_fraction(a) : 1.0, x);
}
KS_INLINE double ks_erfc(double x) {
  if (x != x) return x;
  if (x > 28.0) return 0.0;
  if (x >= 2.0) return ks_erfc_fraction(x);
  return x > 0.5 ? 1.0 - ks_erf_series(x) : 1.0 - ks_erf(x);
}

// Lanczos' approximation with g = 7 and nine terms.
KS_INLINE double ks_lanczos(double x) {
  constexpr double c[] = {0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
                          771.32342877765313,   -176.61502916214059,   12.507343278686905,
                          -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  double sum = c[0];
#pragma unroll
  for (int i = 1; i < 9; i++) sum += c[i] / (x + i);
  return sum;
}
KS_INLINE double ks_lgamma_positive(double z) {
  if (z == 1.0 || z == 2.0) return 0.0;
  const double x = z - 1.0, t = x + 7.5;
  return 0.91893853320467274 + ks_log(ks_lanczos(x)) + (x + 0.5) * ks_log(t) - t;
}
KS_INLINE double ks_lgamma(double x) {
  if (!__builtin_isfinite(x)) return x * x;
  if (x <= 0.0 && __builtin_rint(x) == x) return __builtin_inf();
  if (x >= 0.5) return ks_lgamma_positive(x);
  return ks_log(0x1.921fb54442d18p+1 / __builtin_fabs(ks_sin(0x1.921fb54442d18p+1 * x))) - ks_lgamma_positive(1.0 - x);
}
KS_INLINE double ks_tgamma(double z) {
  if (z < 0.5) return 0x1.921fb54442d18p+1 / (ks_sin(0x1.921fb54442d18p+1 * z) * ks_exp(ks_lgamma_positive(1.0 - z)));
  const double x = z - 1.0, t = x + 7.5, root = ks_pow(t, 0.5 * (x + 0.5));
  return 2.5066282746310002 * root * ks_exp(-t) * root * ks_lanczos(x);
}

KS_INLINE double ks_hypot(double x, double y) {
  const double a = __builtin_fmax(__builtin_fabs(x), __builtin_fabs(y)), b = __builtin_fmin(__builtin_fabs(x), __builtin_fabs(y));
  if (__builtin_isinf(x) || __builtin_isinf(y)) return __builtin_inf();
  if (x != x || y != y) return x + y;
  return a == 0.0 ? 0.0 : a * __builtin_sqrt(1.0 + (b / a) * (b / a));
}
KS_INLINE double ks_fdim(double x, double y) { return x <= y ? 0.0 : x - y; }
KS_INLINE double ks_nextafter(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0) return __builtin_copysign(0x1p-1074, y);
  const long long bits = __builtin_bit_cast(long long, x);
  return __builtin_bit_cast(double, (x < y) == (x > 0.0) ? bits + 1 : bits - 1);
}
KS_INLINE double ks_remquo(double x, double y, int* quotient) {
  const double ay = __builtin_fabs(y);
  double r = __builtin_fmod(__builtin_fabs(x), ay * 8.0 < __builtin_inf() ? ay * 8.0 : ay);
  int n = 0;
  for (int step = 4; step >= 1; step /= 2)
    if (r >= ay * step) r -= ay * step, n += step;
  if (2.0 * r > ay || (2.0 * r == ay && n & 1)) r -= ay, n++;
  *quotient = __builtin_signbit(x) != __builtin_signbit(y) ? -(n & 7) : n & 7;
  return __builtin_signbit(x) ? -r : r;
}
KS_INLINE double ks_remainder(double x, double y) {
  int quotient;
  return ks_remquo(x, y, &quotient);
}
KS_INLINE double ks_modf(double x, double* whole) {
  *whole = __builtin_trunc(x);
  return __builtin_copysign(__builtin_isinf(x) ? 0.0 : x - *whole, x);
}
KS_INLINE int ks_ilogb(double x) { return x == 0.0 || x != x ? -0x7fffffff - 1 : __builtin_isinf(x) ? 0x7fffffff : int(__builtin_logb(x)); }
