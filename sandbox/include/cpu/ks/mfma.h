// The matrix instructions of gfx942 with one block, as functions of a whole wave.
//
// Layouts (AMD CDNA3 ISA, "Matrix Arithmetic Instructions"), for an M x N x K instruction and lane l:
//   A holds row l % M, columns (l / M) * P ... + P - 1, P elements a lane; B likewise with rows and columns swapped;
//   D holds column l % N, and in element i row 4 * (l / N) + i % 4 + (i / 4) * (256 / N), but for double
//   row 4 * i + l / N.
// Sums start from C and run over k in ascending order, fused multiply and add, in the type of D. The hardware's own
// order and internal precision are not documented; results agree up to rounding.
#pragma once
#include <ks/float8.h>

typedef float ks_f32x4 __attribute__((ext_vector_type(4)));
typedef float ks_f32x16 __attribute__((ext_vector_type(16)));
typedef int ks_i32x4 __attribute__((ext_vector_type(4)));
typedef int ks_i32x16 __attribute__((ext_vector_type(16)));
typedef double ks_f64x4 __attribute__((ext_vector_type(4)));
typedef _Float16 ks_f16x4 __attribute__((ext_vector_type(4)));
typedef short ks_s16x4 __attribute__((ext_vector_type(4)));

namespace ks {

// How each kind of operand is stored and what its elements are worth.
template <class T> struct Plainly {
  using Stored = T;
  static T value(T x) { return x; }
};
struct BFloat16 {
  using Stored = unsigned short;
  static float value(unsigned short x) { return __builtin_bit_cast(float, unsigned(x) << 16); }
};
struct Half {
  using Stored = _Float16;
  static float value(_Float16 x) { return float(x); }
};
// Only the upper 19 bits of a float enter an xf32 product.
struct XFloat32 {
  using Stored = float;
  static float value(float x) {
    const unsigned word = __builtin_bit_cast(unsigned, x);
    return __builtin_bit_cast(float, (word + 0xfffu + (word >> 13 & 1u)) & ~0x1fffu);
  }
};
template <class F> struct Float8Values {
  float of[256];
  constexpr Float8Values() : of{} {
    for (int code = 0; code < 256; code++) of[code] = decode_float8<F>(static_cast<unsigned char>(code));
  }
};
template <class F> inline constexpr Float8Values<F> float8_values{};
template <class F> struct Byte {
  using Stored = unsigned char;
  static float value(unsigned char x) { return float8_values<F>.of[x]; }
};

template <class A, class B, class D> struct MatrixFrame {
  A a;
  B b;
  D d;
};

template <int N, class Sum> constexpr int row_of(int lane, int i) {
  return __is_same(Sum, double) ? 4 * i + lane / N : 4 * (lane / N) + i % 4 + i / 4 * (256 / N);
}

template <int M, int N, int K, class AKind, class BKind, class Sum, class Frame>
inline void matrix_op(void* const frames[KS_WAVE], unsigned long) {
  constexpr int per_lane = M * K / 64, outputs = M * N / 64;
  Sum a[M][K], b[K][N], d[M][N];
  for (int lane = 0; lane < 64; lane++) {
    auto* frame = static_cast<const Frame*>(frames[lane]);
    typename AKind::Stored row[per_lane] = {};
    typename BKind::Stored column[per_lane] = {};
    Sum sums[outputs] = {};
    if (frame) {  // a lane without one has ended or is elsewhere: zeros
      __builtin_memcpy(row, &frame->a, sizeof row);
      __builtin_memcpy(column, &frame->b, sizeof column);
      __builtin_memcpy(sums, &frame->d, sizeof sums);
    }
    for (int i = 0; i < per_lane; i++) {
      a[lane % M][lane / M * per_lane + i] = Sum(AKind::value(row[i]));
      b[lane / N * per_lane + i][lane % N] = Sum(BKind::value(column[i]));
    }
    for (int i = 0; i < outputs; i++) d[row_of<N, Sum>(lane, i)][lane % N] = sums[i];
  }
  for (int row = 0; row < M; row++)
    for (int k = 0; k < K; k++)
      for (int column = 0; column < N; column++) d[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 64; lane++)
    if (frames[lane]) {
      Sum sums[outputs];
      for (int i = 0; i < outputs; i++) sums[i] = d[row_of<N, Sum>(lane, i)][lane % N];
      __builtin_memcpy(&static_cast<Frame*>(frames[lane])->d, sums, sizeof sums);
    }
}

template <int M, int N, int K, class AKind, class BKind, class Sum, class A, class B, class D>
KS_INLINE D matrix(A a, B b, D c, int cbsz, int abid, int blgp) {
  if (cbsz | abid | blgp) __builtin_trap();  // broadcasts and negations are not modelled
  using Frame = MatrixFrame<A, B, D>;
  Frame frame{a, b, c};
  ks_wave_barrier(matrix_op<M, N, K, AKind, BKind, Sum, Frame>, &frame);
  return frame.d;
}

}  // namespace ks

#define KS_MFMA(name, M, N, K, AKind, BKind, Sum, A, B, D)                                                   \
  KS_INLINE D __builtin_amdgcn_mfma_##name(A a, B b, D c, int cbsz, int abid, int blgp) {                   \
    return ks::matrix<M, N, K, AKind, BKind, Sum>(a, b, c, cbsz, abid, blgp);                                \
  }
#define KS_MFMA_FLOAT8(left, AKind, right, BKind)                                                            \
  KS_MFMA(f32_32x32x16_##left##_##right, 32, 32, 16, AKind, BKind, float, long, long, ks_f32x16)             \
  KS_MFMA(f32_16x16x32_##left##_##right, 16, 16, 32, AKind, BKind, float, long, long, ks_f32x4)
KS_MFMA_FLOAT8(fp8, ks::Byte<ks::E4M3Fnuz>, fp8, ks::Byte<ks::E4M3Fnuz>)
KS_MFMA_FLOAT8(fp8, ks::Byte<ks::E4M3Fnuz>, bf8, ks::Byte<ks::E5M2Fnuz>)
KS_MFMA_FLOAT8(bf8, ks::Byte<ks::E5M2Fnuz>, fp8, ks::Byte<ks::E4M3Fnuz>)
KS_MFMA_FLOAT8(bf8, ks::Byte<ks::E5M2Fnuz>, bf8, ks::Byte<ks::E5M2Fnuz>)
KS_MFMA(f32_32x32x8bf16_1k, 32, 32, 8, ks::BFloat16, ks::BFloat16, float, ks_s16x4, ks_s16x4, ks_f32x16)
KS_MFMA(f32_16x16x16bf16_1k, 16, 16, 16, ks::BFloat16, ks::BFloat16, float, ks_s16x4, ks_s16x4, ks_f32x4)
KS_MFMA(f32_32x32x8f16, 32, 32, 8, ks::Half, ks::Half, float, ks_f16x4, ks_f16x4, ks_f32x16)
KS_MFMA(f32_16x16x16f16, 16, 16, 16, ks::Half, ks::Half, float, ks_f16x4, ks_f16x4, ks_f32x4)
KS_MFMA(f32_32x32x2f32, 32, 32, 2, ks::Plainly<float>, ks::Plainly<float>, float, float, float, ks_f32x16)
KS_MFMA(f32_16x16x4f32, 16, 16, 4, ks::Plainly<float>, ks::Plainly<float>, float, float, float, ks_f32x4)
KS_MFMA(f32_32x32x4_xf32, 32, 32, 4, ks::XFloat32, ks::XFloat32, float, ks_f32x2, ks_f32x2, ks_f32x16)
KS_MFMA(f32_16x16x8_xf32, 16, 16, 8, ks::XFloat32, ks::XFloat32, float, ks_f32x2, ks_f32x2, ks_f32x4)
KS_MFMA(i32_32x32x16_i8, 32, 32, 16, ks::Plainly<signed char>, ks::Plainly<signed char>, int, long, long, ks_i32x16)
KS_MFMA(i32_16x16x32_i8, 16, 16, 32, ks::Plainly<signed char>, ks::Plainly<signed char>, int, long, long, ks_i32x4)
KS_MFMA(f64_16x16x4f64, 16, 16, 4, ks::Plainly<double>, ks::Plainly<double>, double, double, double, ks_f64x4)
#undef KS_MFMA
#undef KS_MFMA_FLOAT8
