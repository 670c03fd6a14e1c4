// hip_bfloat16, the older of HIP's two bfloat16 types.
#pragma once
#include <hip/hip_bf16.h>

struct hip_bfloat16 {
  unsigned short data;

  hip_bfloat16() = default;
  KS_HD explicit constexpr hip_bfloat16(float x) : data(ks_float_to_bfloat16(x)) {}
  KS_HD constexpr operator float() const { return ks_bfloat16_to_float(data); }
};

#define KS_BFLOAT_ARITHMETIC(op)                                                                                     \
  KS_HD constexpr hip_bfloat16 operator op(hip_bfloat16 a, hip_bfloat16 b) { return hip_bfloat16(float(a) op float(b)); } \
  KS_HD constexpr hip_bfloat16& operator op##=(hip_bfloat16& a, hip_bfloat16 b) { return a = a op b; }
KS_BFLOAT_ARITHMETIC(+)
KS_BFLOAT_ARITHMETIC(-)
KS_BFLOAT_ARITHMETIC(*)
KS_BFLOAT_ARITHMETIC(/)
#undef KS_BFLOAT_ARITHMETIC
