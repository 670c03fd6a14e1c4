// The arithmetic of the launch plan. An Integer turns invalid where its exact value cannot be had (overflow,
// division by zero), and what is computed from it is invalid too.
struct Integer {
  long long value = 0;
  bool valid = true;
  Integer() = default;
  template <class T, class = std::enable_if_t<std::is_integral<T>::value>>
  Integer(T v) : value(static_cast<long long>(v)) {}
};

inline Integer invalid() {
  Integer result;
  result.valid = false;
  return result;
}

inline Integer operator+(Integer a, Integer b) {
  Integer r;
  r.valid = a.valid && b.valid && !__builtin_add_overflow(a.value, b.value, &r.value);
  return r;
}
inline Integer operator-(Integer a, Integer b) {
  Integer r;
  r.valid = a.valid && b.valid && !__builtin_sub_overflow(a.value, b.value, &r.value);
  return r;
}
inline Integer operator*(Integer a, Integer b) {
  Integer r;
  r.valid = a.valid && b.valid && !__builtin_mul_overflow(a.value, b.value, &r.value);
  return r;
}
inline Integer operator-(Integer a) { return Integer(0) - a; }
inline bool operator==(Integer a, Integer b) { return a.valid && b.valid && a.value == b.value; }
inline bool operator!=(Integer a, Integer b) { return a.valid && b.valid && a.value != b.value; }
inline bool operator<(Integer a, Integer b) { return a.valid && b.valid && a.value < b.value; }
inline bool operator<=(Integer a, Integer b) { return a.valid && b.valid && a.value <= b.value; }
inline bool operator>(Integer a, Integer b) { return b < a; }
inline bool operator>=(Integer a, Integer b) { return b <= a; }

// Rounded down, as is the remainder's sign that of b.
inline Integer floordiv(Integer a, Integer b) {
  if (!a.valid || !b.valid || b.value == 0) return invalid();
  if (b.value == -1) return -a;
  const long long q = a.value / b.value;
  return Integer(a.value % b.value != 0 && (a.value < 0) != (b.value < 0) ? q - 1 : q);
}
inline Integer modulo(Integer a, Integer b) { return a - floordiv(a, b) * b; }
inline Integer cdiv(Integer a, Integer b) { return -floordiv(-a, b); }
inline Integer power(Integer a, int exponent) {
  Integer result(1);
  while (exponent-- > 0 && result.valid) result = result * a;
  return result;
}
inline Integer least(Integer a, Integer b) { return !a.valid || (b.valid && a.value <= b.value) ? a : b; }
inline Integer greatest(Integer a, Integer b) { return !a.valid || (b.valid && a.value >= b.value) ? a : b; }

inline double real(Integer a) { return a.valid ? static_cast<double>(a.value) : std::nan(""); }
inline Integer whole(double a) {
  return std::fabs(a) < 9007199254740992.0 && std::floor(a) == a ? Integer(static_cast<long long>(a)) : invalid();
}
inline double quotient(double a, double b) { return b == 0.0 ? std::nan("") : a / b; }
inline double modulo(double a, double b) {
  if (b == 0.0) return std::nan("");
  const double rest = std::fmod(a, b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
inline double floordiv(double a, double b) { return b == 0.0 ? std::nan("") : std::round((a - modulo(a, b)) / b); }
inline double cdiv(double a, double b) { return -floordiv(-a, b); }
inline double power(double a, double b) { return a < 0.0 || (a == 0.0 && b < 0.0) ? std::nan("") : std::pow(a, b); }
inline double least(double a, double b) { return b < a ? b : a; }
inline double greatest(double a, double b) { return b > a ? b : a; }
template <class T, class... Rest> T least(T a, T b, T c, Rest... rest) { return least(least(a, b), c, rest...); }
template <class T, class... Rest> T greatest(T a, T b, T c, Rest... rest) { return greatest(greatest(a, b), c, rest...); }

inline bool truth(Integer a) { return a.valid && a.value != 0; }
inline bool truth(double a) { return a != 0.0; }
