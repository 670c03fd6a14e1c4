// The four 8-bit floats: their values, and rounding to nearest even.
//
// Sources: AMD CDNA3 ISA (the FNUZ kinds: no infinity, no negative zero, 0x80 is the only NaN), Open Compute
// Project "8-bit Floating Point Specification" (OCP kinds: E4M3 has no infinity).
#pragma once
#include <ks/vector_types.h>

namespace ks {

template <int E, int M, int Bias, int Largest, int Infinity, int Nan, bool Fnuz> struct Float8 {
  static constexpr int exponent_bits = E, mantissa_bits = M, bias = Bias;
  static constexpr int largest = Largest;    // code of the largest finite value
  static constexpr int infinity = Infinity;  // what an infinity becomes: itself or NaN
  static constexpr int nan = Nan;
  static constexpr bool fnuz = Fnuz;
};
using E4M3Fnuz = Float8<4, 3, 8, 0x7f, 0x80, 0x80, true>;
using E5M2Fnuz = Float8<5, 2, 16, 0x7f, 0x80, 0x80, true>;
using E4M3Ocp = Float8<4, 3, 7, 0x7e, 0x7f, 0x7f, false>;
using E5M2Ocp = Float8<5, 2, 15, 0x7b, 0x7c, 0x7f, false>;

template <class F> KS_HD constexpr float decode_float8(unsigned char code) {
#if defined(KS_AMDGPU) && (defined(__gfx942__) || defined(__gfx950__))
  // The instructions decode the kinds that the GPU computes with: FNUZ on gfx942, OCP on gfx950.
#ifdef __gfx942__
  constexpr bool native = F::fnuz;
#else
  constexpr bool native = !F::fnuz;
#endif
  if constexpr (native) {
    if (!__builtin_is_constant_evaluated())
      return F::mantissa_bits == 3 ? __builtin_amdgcn_cvt_f32_fp8(code, 0) : __builtin_amdgcn_cvt_f32_bf8(code, 0);
  }
#endif
  const unsigned magnitude = code & 0x7fu, mantissa = magnitude & ((1u << F::mantissa_bits) - 1);
  const unsigned sign = unsigned(code & 0x80u) << 24;
  if (F::fnuz ? code == F::nan : magnitude > unsigned(F::infinity) || (F::infinity == F::nan && magnitude == unsigned(F::nan)))
    return __builtin_nanf("");
  if (!F::fnuz && F::infinity != F::nan && magnitude == unsigned(F::infinity))
    return __builtin_bit_cast(float, sign | 0x7f800000u);
  const unsigned exponent = magnitude >> F::mantissa_bits;
  if (exponent == 0) {
    const float unit = __builtin_bit_cast(float, unsigned(1 - F::bias - F::mantissa_bits + 127) << 23);
    return (sign ? -unit : unit) * float(mantissa);
  }
  return __builtin_bit_cast(float, sign | (exponent + unsigned(127 - F::bias)) << 23 | mantissa << (23 - F::mantissa_bits));
}

// Finite values beyond the largest become it if `saturate`, else what an infinity becomes.
template <class F> KS_HD constexpr unsigned char encode_float8(float value, bool saturate) {
  const unsigned word = __builtin_bit_cast(unsigned, value), sign = word >> 24 & 0x80u;
  const unsigned magnitude = word & 0x7fffffffu;
  const unsigned special = F::fnuz ? 0u : sign;
  if (magnitude > 0x7f800000u) return static_cast<unsigned char>(special | unsigned(F::nan));
  if (magnitude == 0x7f800000u && (F::fnuz || !saturate)) return static_cast<unsigned char>(special | unsigned(F::infinity));
  // In units of the last place at this exponent (no less than the subnormals' one), rounded to nearest even.
  int exponent = int(magnitude >> 23) - 127;
  if (exponent < 1 - F::bias) exponent = 1 - F::bias;
  const int shift = 23 - F::mantissa_bits + (exponent - (int(magnitude >> 23) - 127));
  const unsigned significand = magnitude >> 23 ? (magnitude & 0x7fffffu) | 0x800000u : 0u;
  unsigned units = 0;
  if (shift < 32) {
    const unsigned below = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
    units = significand >> shift;
    if (below > half || (below == half && (units & 1u))) units++;
  }
  const int code = ((exponent + F::bias - 1) << F::mantissa_bits) + int(units);
  if (code > F::largest) return static_cast<unsigned char>(saturate ? sign | unsigned(F::largest) : special | unsigned(F::infinity));
  return static_cast<unsigned char>(code == 0 && F::fnuz ? 0 : sign | unsigned(code));
}

}  // namespace ks
