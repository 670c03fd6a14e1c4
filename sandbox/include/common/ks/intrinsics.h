// HIP's integer and bit intrinsics that involve no other thread.
#pragma once

template <class To, class From> KS_INLINE To ks_bits(From value) { return __builtin_bit_cast(To, value); }

KS_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
KS_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
KS_INLINE int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
KS_INLINE int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
KS_INLINE int __ffs(int x) { return __builtin_ffs(x); }
KS_INLINE int __ffs(unsigned x) { return __builtin_ffs(int(x)); }
KS_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
KS_INLINE int __ffsll(unsigned long long x) { return __builtin_ffsll(static_cast<long long>(x)); }
KS_INLINE int __ffsll(unsigned long x) { return __builtin_ffsll(static_cast<long long>(x)); }
KS_INLINE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
KS_INLINE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }

// Byte i of the result is the byte of {y, x} that nibble i of `selector` names.
KS_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++) result |= unsigned(bytes >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
  return result;
}

KS_INLINE unsigned __bitextract_u32(unsigned x, unsigned offset, unsigned width) {
  offset &= 31u, width &= 31u;
  return width ? x << (32 - width - offset & 31u) >> (32 - width) : 0u;
}
KS_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31u) >> 32);
}
KS_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31u));
}

KS_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
KS_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
KS_INLINE int __mulhi(int x, int y) { return int(static_cast<long long>(x) * y >> 32); }
KS_INLINE unsigned __umulhi(unsigned x, unsigned y) { return unsigned(static_cast<unsigned long long>(x) * y >> 32); }
KS_INLINE long long __mul64hi(long long x, long long y) { return static_cast<long long>(static_cast<__int128>(x) * y >> 64); }
KS_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
KS_INLINE int __hadd(int x, int y) { return int((static_cast<long long>(x) + y) >> 1); }
KS_INLINE int __rhadd(int x, int y) { return int((static_cast<long long>(x) + y + 1) >> 1); }
KS_INLINE unsigned __uhadd(unsigned x, unsigned y) { return unsigned((static_cast<unsigned long long>(x) + y) >> 1); }
KS_INLINE unsigned __urhadd(unsigned x, unsigned y) { return unsigned((static_cast<unsigned long long>(x) + y + 1) >> 1); }
KS_INLINE unsigned __sad(int x, int y, unsigned z) { return z + unsigned(x > y ? x - y : y - x); }
KS_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }

// Dot products of four bytes (or two halves of a word) with a 32-bit sum.
template <class Byte, class Sum> KS_INLINE Sum ks_dot4(unsigned a, unsigned b, Sum sum) {
  for (int i = 0; i < 4; i++) sum += Sum(Byte(a >> 8 * i)) * Sum(Byte(b >> 8 * i));
  return sum;
}
KS_INLINE int __dp4a(int a, int b, int sum) { return ks_dot4<signed char>(unsigned(a), unsigned(b), sum); }
KS_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned sum) { return ks_dot4<unsigned char>(a, b, sum); }
KS_INLINE int amd_mixed_dot(int a, int b, int sum, bool) { return __dp4a(a, b, sum); }

#define KS_REINTERPRET(name, To, From) \
  KS_INLINE To name(From x) { return ks_bits<To>(x); }
KS_REINTERPRET(__float_as_int, int, float)
KS_REINTERPRET(__float_as_uint, unsigned, float)
KS_REINTERPRET(__int_as_float, float, int)
KS_REINTERPRET(__uint_as_float, float, unsigned)
KS_REINTERPRET(__double_as_longlong, long long, double)
KS_REINTERPRET(__longlong_as_double, double, long long)
#undef KS_REINTERPRET
KS_INLINE int __double2hiint(double x) { return int(ks_bits<long long>(x) >> 32); }
KS_INLINE int __double2loint(double x) { return int(ks_bits<long long>(x)); }
KS_INLINE double __hiloint2double(int high, int low) {
  return ks_bits<double>(static_cast<long long>(high) << 32 | unsigned(low));
}

// float and double to integers: out of range saturates and NaN is 0, as on the GPU (and unlike a C++ cast).
template <class I, class F> KS_INLINE I ks_to_integer(F x) {
  constexpr bool is_signed = I(-1) < I(0);
  constexpr int digits = int(sizeof(I)) * 8 - is_signed;
  const F limit = F(1ull << (digits - 1)) * 2;
  if (x != x) return 0;
  if (x >= limit) return I(~0ull >> (64 - digits));
  if (x < (is_signed ? -limit : F(0))) return is_signed ? I(1ull << (sizeof(I) * 8 - 1)) : I(0);
  return I(x);
}
#define KS_CONVERT(source, F, suffix, target, I)                                                     \
  KS_INLINE I __##source##2##target##_rn(F x) { return ks_to_integer<I>(__builtin_nearbyint##suffix(x)); } \
  KS_INLINE I __##source##2##target##_rz(F x) { return ks_to_integer<I>(__builtin_trunc##suffix(x)); }     \
  KS_INLINE I __##source##2##target##_ru(F x) { return ks_to_integer<I>(__builtin_ceil##suffix(x)); }      \
  KS_INLINE I __##source##2##target##_rd(F x) { return ks_to_integer<I>(__builtin_floor##suffix(x)); }     \
  KS_INLINE F __##target##2##source##_rn(I x) { return F(x); }
KS_CONVERT(float, float, f, int, int)
KS_CONVERT(float, float, f, uint, unsigned)
KS_CONVERT(float, float, f, ll, long long)
KS_CONVERT(float, float, f, ull, unsigned long long)
KS_CONVERT(double, double, , int, int)
KS_CONVERT(double, double, , uint, unsigned)
KS_CONVERT(double, double, , ll, long long)
KS_CONVERT(double, double, , ull, unsigned long long)
#undef KS_CONVERT
KS_INLINE float __double2float_rn(double x) { return float(x); }
KS_INLINE double __float2double_rn(float x) { return x; }

// Ordinary loads and stores: a cache hint has no meaning here.
template <class T> KS_INLINE T __ldg(const T* p) { return *p; }
#define KS_HINTED(name) \
  template <class T> KS_INLINE T __ld##name(const T* p) { return *p; } \
  template <class T> KS_INLINE void __st##name(T* p, T value) { *p = value; }
KS_HINTED(cg)
KS_HINTED(ca)
KS_HINTED(cs)
#undef KS_HINTED
template <class T> KS_INLINE void __stwt(T* p, T value) { *p = value; }
template <class T> KS_INLINE void __stwb(T* p, T value) { *p = value; }

KS_INLINE long long __clock64() { return static_cast<long long>(__builtin_readcyclecounter()); }
KS_INLINE long long clock64() { return __clock64(); }
KS_INLINE long long wall_clock64() { return __clock64(); }
KS_INLINE unsigned __clock() { return unsigned(__clock64()); }
KS_INLINE long clock() { return __clock64(); }
KS_INLINE void __trap() { __builtin_trap(); }
KS_INLINE void abort() { __builtin_trap(); }
KS_INLINE void __nanosleep(unsigned) {}
#define assert(condition) ((condition) ? void(0) : __builtin_trap())

// A candidate's printf would reach a terminal or a prompt; it compiles and prints nothing.
template <class... A> KS_INLINE int printf(const char*, A...) { return 0; }
