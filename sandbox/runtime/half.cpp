// Conversions that the compiler calls for `_Float16` without F16C and for `__bf16`; IEEE round to nearest even.
// Arguments and results travel in SSE registers as the x86-64 ABI has it for these types.

namespace {

template <class To, class From> To bits(From value) { return __builtin_bit_cast(To, value); }

float half_to_float(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, mantissa = half & 1023u;
  if (exponent == 31) return bits<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent) return bits<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = float(mantissa) * 0x1p-24f;  // zero or subnormal: exact
  return sign ? -magnitude : magnitude;
}

unsigned short float_to_half(float value) {
  const unsigned word = bits<unsigned>(value), sign = word >> 16 & 0x8000u, magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned short>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Adding 0.5 leaves the mantissa counted in units of the smallest half (2^-24), already rounded.
    const float shifted = bits<float>(magnitude) + 0.5f;
    return static_cast<unsigned short>(sign | (bits<unsigned>(shifted) - 0x3f000000u));
  }
  const unsigned rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<unsigned short>(sign | ((rounded - 0x38000000u) >> 13));
}

unsigned short float_to_bfloat(float value) {
  const unsigned word = bits<unsigned>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>(word >> 16 | 0x40u);
  return static_cast<unsigned short>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

// Rounding twice is exact here if the first step rounds to odd: a sticky last bit replaces rounding.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  unsigned word = bits<unsigned>(nearest);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) word--;
  return bits<float>(word | 1u);
}

}  // namespace

extern "C" {
float __extendhfsf2(_Float16 value) { return half_to_float(bits<unsigned short>(value)); }
_Float16 __truncsfhf2(float value) { return bits<_Float16>(float_to_half(value)); }
_Float16 __truncdfhf2(double value) { return bits<_Float16>(float_to_half(round_to_odd(value))); }
__bf16 __truncsfbf2(float value) { return bits<__bf16>(float_to_bfloat(value)); }
__bf16 __truncdfbf2(double value) { return bits<__bf16>(float_to_bfloat(round_to_odd(value))); }
}
