// A launch: what a device refuses, then the kernel's x86 build on this thread, with a fault handler of the device's.
#include "fakehip.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {
namespace {

void on_fault(int, siginfo_t* info, void*) {
  char line[160];
  const int length = snprintf(line, sizeof line,
                              "Memory access fault by GPU node-1 (Agent handle: 0x5a10) on address %p. Reason: Page not "
                              "present or supervisor privilege.\n",
                              info->si_addr);
  if (write(2, line, size_t(length)) < 0) _exit(70);
  signal(SIGABRT, SIG_DFL);
  abort();
}

// The stacks of a block's threads are at an address that the kernels' runtime is built for.
bool map_stacks() {
  enum { kNoReplace = 0x100000 };
  static bool mapped;
  if (mapped) return true;
  void* const wanted = reinterpret_cast<void*>(KS_STACKS - KS_GUARD_BYTES);
  mapped = mmap(wanted, size_t(KS_MAX_THREADS) * KS_STACK_STRIDE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | kNoReplace, -1, 0) == wanted;
  return mapped;
}

int check_pointers(const char* call, const Kernel* kernel, const char* segment) {
  const unsigned count = kernel->segment[0], *const offset = kernel->segment + 1;
  const unsigned* const pointer = offset + 2 * (count + 1);
  for (unsigned i = 0; i < count; i++) {
    void* value;
    if (!pointer[i]) continue;
    memcpy(&value, segment + offset[i], sizeof value);
    if (!block_of(value, 0)) return misuse(call, IllegalAddress, "a pointer argument is no device memory");
  }
  return Success;
}

}  // namespace

int launch(const char* call, const Kernel* kernel, const Shape& shape, void* stream, const char* segment) {
  const unsigned *const grid = shape.grid, *const block = shape.block;
  Module* const module = module_with(kernel);
  if (!module) return misuse(call, InvalidHandle, "no such function");
  if (!stream_of(stream)) return misuse(call, InvalidHandle, "no such stream");
  const uint64_t threads = uint64_t(block[0]) * block[1] * block[2];
  if (!threads || threads > KS_MAX_THREADS || !grid[0] || !grid[1] || !grid[2]) return done(call, InvalidConfiguration);
  if (uint64_t(grid[0]) * block[0] > UINT32_MAX || grid[1] > 65535 || grid[2] > 65535)
    return done(call, InvalidConfiguration);
  if (shape.lds > unsigned(conf.lds_bytes)) return done(call, InvalidValue);
  if (const int code = check_pointers(call, kernel, segment)) return code;
  if (!map_stacks()) return misuse(call, OutOfMemory, "there is something where the threads' stacks go");
  stream_of(stream)->pending = true;
  static char handler_stack[1 << 16];
  const stack_t alternate = {handler_stack, 0, sizeof handler_stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction fault = {}, old[2];
  fault.sa_sigaction = on_fault;
  fault.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &fault, &old[0]);
  sigaction(SIGBUS, &fault, &old[1]);
  const KsLaunch what = {kernel->number, module->fibers ? unsigned(KS_FIBERS) : 0u, {grid[0], grid[1], grid[2]},
                         {block[0], block[1], block[2]}, shape.lds, reinterpret_cast<const KsSlot*>(segment)};
  module->image->run(&what);
  sigaction(SIGSEGV, &old[0], nullptr);
  sigaction(SIGBUS, &old[1], nullptr);
  return done(call, Success, "%s grid=%u,%u,%u block=%u,%u,%u lds=%u", kernel->symbol, grid[0], grid[1], grid[2],
              block[0], block[1], block[2], shape.lds);
}

}  // namespace fake
