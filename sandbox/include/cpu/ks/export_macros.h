// KS_EXPORT(i, (kernel)): makes a kernel launchable as number i. Uses must come in the order 0, 1, 2 ...
// Included after the candidate's text, without a guard: a macro of its own of this name ends here.
#undef KS_EXPORT
#define KS_EXPORT(i, kernel)                                                                        \
  extern "C" void ks_loop_##i(const KsSlot* slots) { ks::Kernel<kernel>::loop(slots); }             \
  extern "C" void ks_fiber_##i(const KsSlot* slots) { ks::Kernel<kernel>::fiber(slots); }           \
  extern "C" __attribute__((section("ks_kernel_table"), used, retain)) const KsKernel ks_kernel_##i = \
      {ks_loop_##i, ks_fiber_##i};
