// Joins the HIP-on-CPU runtime to an ordinary program: its tables, its stacks, its dynamic LDS.
#include <hip/hip_runtime.h>

#include <sys/mman.h>

extern "C" {
KsKernel ks_kernels[1];
void* ks_libm[1];
unsigned char ks_lds_begin[1], ks_dynamic_lds[KS_DYNAMIC_LDS_BYTES];
extern const KsImage ks_image;
void ks_host_run(const std::function<void()>& thread, dim3 grid, dim3 block, unsigned lds) {
  static const bool ready = [] {
    const std::size_t bytes = KS_STACK_STRIDE * KS_MAX_THREADS;
    void* const stacks = reinterpret_cast<void*>(KS_STACKS);
    if (mmap(stacks, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != stacks) std::exit(3);
    ks_kernels[0].fiber = [](const KsSlot* slots) {
      (*static_cast<const std::function<void()>*>(slots->pointer))();
    };
    return true;
  }();
  (void)ready;
  const KsSlot slot = {.pointer = const_cast<std::function<void()>*>(&thread)};
  const KsLaunch launch = {0, KS_FIBERS, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, lds, &slot};
  ks_image.run(&launch);
}
}
