// char1 ... double4 and dim3, with HIP's element-wise operators and make_ functions, for every target.
// Needs the target's qualifiers and KS_INLINE (<ks/target.h>).
#pragma once

#define KS_HD __host__ __device__ __attribute__((always_inline))

template <class T, unsigned N> struct HIP_vector_base;
template <class T> struct alignas(sizeof(T)) HIP_vector_base<T, 1> { T x; };
template <class T> struct alignas(2 * sizeof(T)) HIP_vector_base<T, 2> { T x, y; };
template <class T> struct HIP_vector_base<T, 3> { T x, y, z; };
template <class T> struct alignas(sizeof(T) >= 4 ? 16 : 4 * sizeof(T)) HIP_vector_base<T, 4> { T x, y, z, w; };

template <class T, unsigned N> struct HIP_vector_type : HIP_vector_base<T, N> {
  using value_type = T;

  HIP_vector_type() = default;
  KS_HD constexpr HIP_vector_type(T all) {
    this->x = all;
    if constexpr (N > 1) this->y = all;
    if constexpr (N > 2) this->z = all;
    if constexpr (N > 3) this->w = all;
  }
  template <class... U>
    requires(N > 1 && sizeof...(U) == N)
  KS_HD constexpr HIP_vector_type(U... elements) : HIP_vector_base<T, N>{static_cast<T>(elements)...} {}

  template <class F> KS_HD constexpr HIP_vector_type map(const HIP_vector_type& other, F f) const {
    HIP_vector_type result;
    result.x = f(this->x, other.x);
    if constexpr (N > 1) result.y = f(this->y, other.y);
    if constexpr (N > 2) result.z = f(this->z, other.z);
    if constexpr (N > 3) result.w = f(this->w, other.w);
    return result;
  }

  KS_HD constexpr HIP_vector_type& operator++() { return *this = map(*this, [](T a, T) { return T(a + 1); }); }
  KS_HD constexpr HIP_vector_type& operator--() { return *this = map(*this, [](T a, T) { return T(a - 1); }); }
  KS_HD constexpr HIP_vector_type operator-() const { return map(*this, [](T a, T) { return T(-a); }); }
  KS_HD constexpr HIP_vector_type operator~() const { return map(*this, [](T a, T) { return T(~a); }); }
};

namespace ks {
template <class S> inline constexpr bool is_number = __is_arithmetic(S);
}

#define KS_VECTOR_OPERATOR(op)                                                                                        \
  template <class T, unsigned N>                                                                                      \
  KS_HD constexpr HIP_vector_type<T, N> operator op(const HIP_vector_type<T, N>& a,                     \
                                                                  const HIP_vector_type<T, N>& b) {                   \
    return a.map(b, [](T s, T t) { return T(s op t); });                                                              \
  }                                                                                                                   \
  template <class T, unsigned N, class S>                                                                             \
    requires ks::is_number<S>                                                                                         \
  KS_HD constexpr HIP_vector_type<T, N> operator op(const HIP_vector_type<T, N>& a, S b) {              \
    return a op HIP_vector_type<T, N>(static_cast<T>(b));                                                             \
  }                                                                                                                   \
  template <class T, unsigned N, class S>                                                                             \
    requires ks::is_number<S>                                                                                         \
  KS_HD constexpr HIP_vector_type<T, N> operator op(S a, const HIP_vector_type<T, N>& b) {              \
    return HIP_vector_type<T, N>(static_cast<T>(a)) op b;                                                             \
  }                                                                                                                   \
  template <class T, unsigned N, class S>                                                                             \
  KS_HD constexpr HIP_vector_type<T, N>& operator op##=(HIP_vector_type<T, N>& a, const S& b) {         \
    return a = a op b;                                                                                                \
  }
KS_VECTOR_OPERATOR(+)
KS_VECTOR_OPERATOR(-)
KS_VECTOR_OPERATOR(*)
KS_VECTOR_OPERATOR(/)
KS_VECTOR_OPERATOR(%)
KS_VECTOR_OPERATOR(&)
KS_VECTOR_OPERATOR(|)
KS_VECTOR_OPERATOR(^)
KS_VECTOR_OPERATOR(<<)
KS_VECTOR_OPERATOR(>>)
#undef KS_VECTOR_OPERATOR

template <class T, unsigned N>
KS_HD constexpr bool operator==(const HIP_vector_type<T, N>& a, const HIP_vector_type<T, N>& b) {
  if constexpr (N == 1) return a.x == b.x;
  else if constexpr (N == 2) return a.x == b.x && a.y == b.y;
  else if constexpr (N == 3) return a.x == b.x && a.y == b.y && a.z == b.z;
  else return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

#define KS_VECTOR_TYPES(T, name)                                                                                      \
  using name##1 = HIP_vector_type<T, 1>;                                                                              \
  using name##2 = HIP_vector_type<T, 2>;                                                                              \
  using name##3 = HIP_vector_type<T, 3>;                                                                              \
  using name##4 = HIP_vector_type<T, 4>;                                                                              \
  KS_HD constexpr name##1 make_##name##1(T x) { return {x}; }                                           \
  KS_HD constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                   \
  KS_HD constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                           \
  KS_HD constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
KS_VECTOR_TYPES(signed char, char)
KS_VECTOR_TYPES(unsigned char, uchar)
KS_VECTOR_TYPES(short, short)
KS_VECTOR_TYPES(unsigned short, ushort)
KS_VECTOR_TYPES(int, int)
KS_VECTOR_TYPES(unsigned int, uint)
KS_VECTOR_TYPES(long, long)
KS_VECTOR_TYPES(unsigned long, ulong)
KS_VECTOR_TYPES(long long, longlong)
KS_VECTOR_TYPES(unsigned long long, ulonglong)
KS_VECTOR_TYPES(float, float)
KS_VECTOR_TYPES(double, double)
#undef KS_VECTOR_TYPES

struct dim3 {
  unsigned x, y, z;
  KS_HD constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  KS_HD constexpr dim3(const uint3& v) : x(v.x), y(v.y), z(v.z) {}
  KS_HD constexpr operator uint3() const { return {x, y, z}; }
};
