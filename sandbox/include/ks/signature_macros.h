// The checks of ks/signature.h as macros, one line of them per kernel and argument; `...` is the kernel's name,
// which may hold commas. Included after the candidate's text, without a guard: its own macros of these names end here.
#undef KS_CHECK_COUNT
#undef KS_CHECK_BUFFER
#undef KS_CHECK_INTEGER
#undef KS_CHECK_REAL
#define KS_CHECK_COUNT(entry, n, ...) \
  static_assert(ks::Signature<decltype(&__VA_ARGS__)>::count == n, ks::count_message<decltype(&__VA_ARGS__)>(entry));
#define KS_CHECK_BUFFER(entry, i, accepted, known, bytes, ...)                         \
  static_assert(ks::takes_buffer<decltype(&__VA_ARGS__), i>(accepted, known, bytes), \
                ks::argument_message<decltype(&__VA_ARGS__), i>(entry));
#define KS_CHECK_INTEGER(entry, i, ...)                          \
  static_assert(ks::takes_integer<decltype(&__VA_ARGS__), i>(), \
                ks::argument_message<decltype(&__VA_ARGS__), i>(entry));
#define KS_CHECK_REAL(entry, i, ...)                          \
  static_assert(ks::takes_real<decltype(&__VA_ARGS__), i>(), \
                ks::argument_message<decltype(&__VA_ARGS__), i>(entry));
