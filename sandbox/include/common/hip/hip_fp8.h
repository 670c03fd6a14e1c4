// HIP's 8-bit floats: the FNUZ kinds that gfx942 computes with, and the OCP kinds. Conversion saturates, as the
// constructors of ROCm's own types do.
#pragma once
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <ks/float8.h>

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1, __HIP_E4M3_FNUZ = 2, __HIP_E5M2_FNUZ = 3 };

KS_INLINE __hip_fp8_storage_t __hip_cvt_float_to_fp8(float x, __hip_saturation_t saturation, __hip_fp8_interpretation_t kind) {
  const bool saturate = saturation == __HIP_SATFINITE;
  switch (kind) {
    case __HIP_E4M3: return ks::encode_float8<ks::E4M3Ocp>(x, saturate);
    case __HIP_E5M2: return ks::encode_float8<ks::E5M2Ocp>(x, saturate);
    case __HIP_E4M3_FNUZ: return ks::encode_float8<ks::E4M3Fnuz>(x, saturate);
    default: return ks::encode_float8<ks::E5M2Fnuz>(x, saturate);
  }
}
KS_INLINE float ks_fp8_to_float(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  switch (kind) {
    case __HIP_E4M3: return ks::decode_float8<ks::E4M3Ocp>(x);
    case __HIP_E5M2: return ks::decode_float8<ks::E5M2Ocp>(x);
    case __HIP_E4M3_FNUZ: return ks::decode_float8<ks::E4M3Fnuz>(x);
    default: return ks::decode_float8<ks::E5M2Fnuz>(x);
  }
}
KS_INLINE __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  return __half(ks_fp8_to_float(x, kind));
}
KS_INLINE __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(float2 x, __hip_saturation_t saturation, __hip_fp8_interpretation_t kind) {
  return static_cast<__hip_fp8x2_storage_t>(__hip_cvt_float_to_fp8(x.x, saturation, kind) |
                                            __hip_cvt_float_to_fp8(x.y, saturation, kind) << 8);
}

#define KS_FP8_TYPES(suffix, Format)                                                                             \
  struct __hip_fp8_##suffix {                                                                                    \
    __hip_fp8_storage_t __x;                                                                                     \
    __hip_fp8_##suffix() = default;                                                                              \
    template <class T>                                                                                           \
      requires(__is_arithmetic(T))                                                                               \
    KS_HD explicit constexpr __hip_fp8_##suffix(T x)                                                             \
        : __x(ks::encode_float8<Format>(static_cast<float>(x), true)) {}                                         \
    KS_HD explicit constexpr __hip_fp8_##suffix(__half x) : __hip_fp8_##suffix(static_cast<float>(x)) {}         \
    KS_HD explicit constexpr __hip_fp8_##suffix(__hip_bfloat16 x) : __hip_fp8_##suffix(static_cast<float>(x)) {} \
    KS_HD constexpr operator float() const { return ks::decode_float8<Format>(__x); }                            \
    KS_HD explicit constexpr operator __half() const { return __half(float(*this)); }                            \
    KS_HD explicit constexpr operator __hip_bfloat16() const { return __hip_bfloat16(float(*this)); }            \
  };                                                                                                             \
  struct alignas(2) __hip_fp8x2_##suffix {                                                                       \
    __hip_fp8x2_storage_t __x;                                                                                   \
    __hip_fp8x2_##suffix() = default;                                                                            \
    KS_HD explicit constexpr __hip_fp8x2_##suffix(float2 v)                                                      \
        : __x(static_cast<__hip_fp8x2_storage_t>(ks::encode_float8<Format>(v.x, true) |                          \
                                                 ks::encode_float8<Format>(v.y, true) << 8)) {}                  \
    KS_HD constexpr operator float2() const {                                                                    \
      return {ks::decode_float8<Format>(static_cast<unsigned char>(__x)),                                        \
              ks::decode_float8<Format>(static_cast<unsigned char>(__x >> 8))};                                  \
    }                                                                                                            \
  };                                                                                                             \
  struct alignas(4) __hip_fp8x4_##suffix {                                                                       \
    __hip_fp8x4_storage_t __x;                                                                                   \
    __hip_fp8x4_##suffix() = default;                                                                            \
    KS_HD explicit constexpr __hip_fp8x4_##suffix(float4 v)                                                      \
        : __x(unsigned(ks::encode_float8<Format>(v.x, true)) | unsigned(ks::encode_float8<Format>(v.y, true)) << 8 | \
              unsigned(ks::encode_float8<Format>(v.z, true)) << 16 | unsigned(ks::encode_float8<Format>(v.w, true)) << 24) {} \
    KS_HD constexpr operator float4() const {                                                                    \
      return {ks::decode_float8<Format>(static_cast<unsigned char>(__x)),                                        \
              ks::decode_float8<Format>(static_cast<unsigned char>(__x >> 8)),                                   \
              ks::decode_float8<Format>(static_cast<unsigned char>(__x >> 16)),                                  \
              ks::decode_float8<Format>(static_cast<unsigned char>(__x >> 24))};                                 \
    }                                                                                                            \
  };
KS_FP8_TYPES(e4m3_fnuz, ks::E4M3Fnuz)
KS_FP8_TYPES(e5m2_fnuz, ks::E5M2Fnuz)
KS_FP8_TYPES(e4m3, ks::E4M3Ocp)
KS_FP8_TYPES(e5m2, ks::E5M2Ocp)
#undef KS_FP8_TYPES
