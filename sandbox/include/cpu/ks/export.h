// What KS_EXPORT makes of a kernel: functions that the runtime can call.
#pragma once
#include <ks/runtime.h>

namespace ks {

template <class T> struct IsPointer { static constexpr bool value = false; };
template <class T> struct IsPointer<T*> { static constexpr bool value = true; };
template <class T> struct RemoveConst { using type = T; };
template <class T> struct RemoveConst<const T> { using type = T; };

template <class T> inline T argument(KsSlot slot) {
  if constexpr (IsPointer<T>::value) return static_cast<T>(slot.pointer);
  else if constexpr (__is_integral(T) || __is_enum(T)) return static_cast<T>(slot.integer);
  else if constexpr (__is_floating_point(T)) return static_cast<T>(slot.real);
  else return T(static_cast<float>(slot.real));  // __half, __hip_bfloat16 and the like
}

template <auto F> struct Kernel;

template <class... A, void (*F)(A...)> struct Kernel<F> {
  // The threads of a block in a loop that the compiler can see through: only for kernels without barriers.
  static void loop(const KsSlot* slots) { loop(slots, __make_integer_seq<Indices, int, sizeof...(A)>{}); }
  static void fiber(const KsSlot* slots) { fiber(slots, __make_integer_seq<Indices, int, sizeof...(A)>{}); }

 private:
  template <class T, T...> struct Indices {};

  template <int... I> static inline void loop([[maybe_unused]] const KsSlot* slots, Indices<int, I...>) {
    threads(argument<typename RemoveConst<A>::type>(slots[I])...);
  }

  template <int... I> static inline void fiber([[maybe_unused]] const KsSlot* slots, Indices<int, I...>) {
    [[clang::noinline]] F(argument<typename RemoveConst<A>::type>(slots[I])...);
  }

  static inline __attribute__((always_inline)) void threads(A... arguments) {
    const unsigned nx = unsigned(ks_state.block_dim.x), ny = unsigned(ks_state.block_dim.y),
                   nz = unsigned(ks_state.block_dim.z);
    for (unsigned z = 0; z < nz; z++)
      for (unsigned y = 0; y < ny; y++)
        for (unsigned x = 0; x < nx; x++) {
          ks_state.thread = {KsIndex(x), KsIndex(y), KsIndex(z)};
          [[clang::always_inline]] F(arguments...);
        }
  }
};

}  // namespace ks
