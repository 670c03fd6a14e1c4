// Stands in for ks/export.h in the x86 build that travels in a fake code object: a kernel takes its arguments
// from a kernel argument segment, laid out as the compiler lays out a GPU's, by the parameters' own types. What
// packs that segment reads the code object's metadata instead, so that each checks the other.
#pragma once
#include <ks/export.h>

namespace ks {

template <auto F> struct Segment;

template <class... A, void (*F)(A...)> struct Segment<F> {
  static constexpr unsigned count = sizeof...(A);
  struct Table {
    unsigned offset[count + 1], size[count + 1], pointer[count + 1], bytes;
  };

  static constexpr Table layout() {
    Table table = {};
    unsigned at = 0, i = 0;
    ((at = (at + alignof(A) - 1) / alignof(A) * alignof(A), table.offset[i] = at,
      table.size[i] = sizeof(A), table.pointer[i] = IsPointer<typename RemoveConst<A>::type>::value, at += sizeof(A), i++),
     ...);
    table.bytes = at;
    return table;
  }
  static constexpr Table table = layout();

  template <class T> static void convert(const char* from, KsSlot* slot) {
    const T value = *reinterpret_cast<const T*>(from);
    if constexpr (IsPointer<T>::value) slot->pointer = (void*)value;
    else if constexpr (__is_integral(T) || __is_enum(T)) slot->integer = (long long)value;
    else slot->real = (double)(float)value;
    if constexpr (__is_same(T, double)) slot->real = value;
  }

  template <class Run> static void with(const KsSlot* segment, Run run) {
    KsSlot slots[count + 1];
    unsigned i = 0;
    const char* const base = reinterpret_cast<const char*>(segment);
    ((convert<typename RemoveConst<A>::type>(base + table.offset[i], &slots[i]), i++), ...);
    run(slots);
  }

  static void loop(const KsSlot* segment) {
    with(segment, [](const KsSlot* slots) { Kernel<F>::loop(slots); });
  }
  static void fiber(const KsSlot* segment) {
    with(segment, [](const KsSlot* slots) { Kernel<F>::fiber(slots); });
  }
};

}  // namespace ks

// ks_segment_<i>: number of arguments, offset, size and pointer-or-not of each, bytes of all.
#undef KS_EXPORT
#define KS_EXPORT(i, kernel)                                                                              \
  extern "C" void ks_loop_##i(const KsSlot* segment) { ks::Segment<kernel>::loop(segment); }              \
  extern "C" void ks_fiber_##i(const KsSlot* segment) { ks::Segment<kernel>::fiber(segment); }            \
  extern "C" __attribute__((section("ks_kernel_table"), used, retain)) const KsKernel ks_kernel_##i = \
      {ks_loop_##i, ks_fiber_##i};                                                                        \
  struct KsSegment_##i {                                                                                  \
    unsigned count;                                                                                       \
    ks::Segment<kernel>::Table table;                                                                     \
  };                                                                                                      \
  extern "C" __attribute__((section(".rodata.ks_segment"), used, retain)) const KsSegment_##i ks_segment_##i = \
      {ks::Segment<kernel>::count, ks::Segment<kernel>::table};
