// Whether a kernel takes what the launch plan passes. Used by generated static_asserts, after the candidate's
// text, on every target and with ROCm's own headers: so it includes nothing and names no HIP type. Types are
// compared by their spelling; `accepted` lists the spellings that hold a dtype, each between bars ("|float|").
#pragma once

namespace ks {

// A message for static_assert, built at compile time; what does not fit is cut off.
struct Text {
  char text[512] = {};
  unsigned long length = 0;
  constexpr unsigned long size() const { return length; }
  constexpr const char* data() const { return text; }
  constexpr void add(char c) {
    if (length < sizeof(text)) text[length++] = c;
  }
  constexpr void add(const char* s) {
    while (*s) add(*s++);
  }
  constexpr void add(unsigned number) {
    if (number >= 10) add(number / 10);
    add(char('0' + number % 10));
  }
};

// "const char *ks::pretty() [T = float]": the compiler's own spelling of T, with its wrapping.
template <class T> constexpr const char* pretty() { return __PRETTY_FUNCTION__; }

template <class T> constexpr Text spelling() {
  Text name;
  const char* s = pretty<T>();
  while (*s != '[') s++;
  while (*s != '=') s++;
  for (s += 2; s[1]; s++) name.add(*s);
  return name;
}

constexpr bool same(const Text& name, const char* begin, const char* end) {
  if (name.length != static_cast<unsigned long>(end - begin)) return false;
  for (unsigned long i = 0; i < name.length; i++)
    if (name.text[i] != begin[i]) return false;
  return true;
}

constexpr bool listed(const Text& name, const char* bars) {
  for (const char* begin = bars; *begin; begin++) {
    if (*begin != '|') continue;
    const char* end = begin + 1;
    while (*end && *end != '|') end++;
    if (same(name, begin + 1, end)) return true;
  }
  return false;
}

template <class T> struct Plain { using type = T; };
template <class T> struct Plain<const T> { using type = T; };
template <class T> struct Plain<volatile T> { using type = T; };
template <class T> struct Plain<const volatile T> { using type = T; };
template <class T> struct Plain<T&> { using type = typename Plain<T>::type; };
template <class T> using PlainOf = typename Plain<T>::type;

template <class T> T& value();
template <class T> concept Subscriptable = !__is_class(T) && requires { value<T>()[0]; };

// Arrays and compiler vectors stand for their elements.
template <class T> struct Element { using type = PlainOf<T>; };
template <Subscriptable T> struct Element<T> {
  using type = typename Element<PlainOf<decltype(value<T>()[0])>>::type;
};

template <class T> constexpr bool holds(const char* accepted, const char* known, unsigned long bytes) {
  if constexpr (__is_void(T)) {
    return true;
  } else if constexpr (__is_enum(T)) {
    return holds<__underlying_type(T)>(accepted, known, bytes);
  } else if constexpr (requires { sizeof(T); }) {
    const Text name = spelling<T>();
    if (listed(name, accepted)) return true;
    // A struct of the candidate's own may hold anything that its size allows.
    return (__is_class(T) || __is_union(T)) && !listed(name, known) && sizeof(T) % bytes == 0;
  } else {
    return false;
  }
}

template <class T> struct Pointee { static constexpr bool pointer = false; using type = T; };
template <class T> struct Pointee<T*> {
  static constexpr bool pointer = true;
  using type = typename Element<PlainOf<T>>::type;
};

template <class F> struct Signature { static constexpr bool kernel = false; static constexpr int count = -1; };
template <class... A> struct Signature<void (*)(A...)> {
  static constexpr bool kernel = true;
  static constexpr int count = sizeof...(A);
  template <int I> using Argument = PlainOf<__type_pack_element<I, A...>>;
};
template <class... A> struct Signature<void (*)(A...) noexcept> : Signature<void (*)(A...)> {};

template <class F, int I>
constexpr bool takes_buffer(const char* accepted, const char* known, unsigned long bytes) {
  if constexpr (I < Signature<F>::count) {
    using P = Pointee<typename Signature<F>::template Argument<I>>;
    if constexpr (P::pointer) return holds<typename P::type>(accepted, known, bytes);
    else return false;
  } else {
    return true;  // the count is refused elsewhere
  }
}

template <class F, int I> constexpr bool takes_integer() {
  if constexpr (I < Signature<F>::count) {
    using T = typename Signature<F>::template Argument<I>;
    return __is_integral(T) || __is_enum(T);
  } else {
    return true;
  }
}

template <class F, int I> constexpr bool takes_real() {
  if constexpr (I < Signature<F>::count) {
    using T = typename Signature<F>::template Argument<I>;
    return __is_same(T, float) || __is_same(T, double);
  } else {
    return true;
  }
}

template <class F> constexpr Text count_message(unsigned entry) {
  Text text;
  text.add("KS_PLAN count ");
  text.add(entry);
  text.add(' ');
  if (Signature<F>::kernel) text.add(unsigned(Signature<F>::count));
  else text.add('?');
  return text;
}

template <class F, int I> constexpr Text argument_message(unsigned entry) {
  Text text;
  text.add("KS_PLAN argument ");
  text.add(entry);
  text.add(' ');
  text.add(unsigned(I));
  text.add(' ');
  if constexpr (I < Signature<F>::count) text.add(pretty<typename Signature<F>::template Argument<I>>());
  return text;
}

}  // namespace ks
