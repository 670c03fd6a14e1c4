// Runs the blocks of a launch one after another; the threads of a block are fibers of this one OS thread.
//
// A wave keeps a bit mask of its lanes per state. A fiber runs until it waits or returns; then the next
// ready lane of its wave runs. When no lane of a wave is ready, lanes waiting at a collective are served;
// when none waits there either, the wave has arrived at the barrier and the next wave runs. When all waves
// have arrived, the barrier opens for those that wait, whoever has returned. So no barrier can deadlock;
// only a kernel that spins on memory hangs, and the worker's time limit ends it.
#include <ks/runtime.h>
#include "libm_names.h"

extern "C" {
KsState ks_state;
extern const KsKernel ks_kernels[];
extern unsigned char ks_lds_begin[], ks_lds_end[], ks_dynamic_lds[];
extern void* ks_libm[];
void* memset(void*, int, unsigned long);

void ks_enter_block();
void ks_end_fiber();
// Called with the stack of who leaves; each returns the stack to go on with.
void* ks_first_fiber(void* stack);
void* ks_at_end(void* stack);
void* ks_at_barrier(void* stack);
void* ks_at_collective(void* stack, const void* site, KsWaveOp op, void* frame);
}

// A switch saves on the old stack what the System V ABI preserves across calls, has C++ choose the next stack,
// and restores the same from there. The extra 8 bytes keep the stack aligned for the call. It ends in a jump, for
// a return would always be predicted to go back to where this fiber, not the next one, has called from.
#define KS_SAVE "pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15; subq $8, %rsp\n"
#define KS_RESTORE "addq $8, %rsp; popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx; popq %rcx; jmp *%rcx\n"
#define KS_SWITCH(name, arguments, choose)                                                                \
  asm(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" KS_SAVE arguments               \
      "movq %rsp, %rdi\ncall " #choose "\nmovq %rax, %rsp\n" KS_RESTORE ".size " #name ", .-" #name "\n");
KS_SWITCH(ks_enter_block, "", ks_first_fiber)
KS_SWITCH(ks_end_fiber, "", ks_at_end)
KS_SWITCH(ks_barrier, "", ks_at_barrier)
KS_SWITCH(ks_wave_barrier, "movq %rdi, %rdx; movq %rsi, %rcx; movq 56(%rsp), %rsi\n", ks_at_collective)

namespace {

using Mask = unsigned long;

struct Fiber {
  void* stack;
  KsIndex3 thread;
};

struct Arrival {  // at a collective
  const void* site;
  KsWaveOp op;
  void* frame;
};

struct Wave {
  Mask ready, at_barrier, at_collective;
};

Fiber fibers[KS_MAX_THREADS];
Arrival arrivals[KS_MAX_THREADS];
Wave waves[KS_MAX_THREADS / KS_WAVE];
unsigned wave_count;
Mask busy_waves;  // those with a lane that can still run before the barrier
unsigned current;
bool reverse;
void* launcher;  // stack of the loop over blocks
void (*kernel)(const KsSlot*);
const KsSlot* slots;

unsigned pick(Mask mask) {
  return reverse ? 63u - unsigned(__builtin_clzl(mask)) : unsigned(__builtin_ctzl(mask));
}

void* resume(unsigned thread) {
  current = thread;
  ks_state.thread = fibers[thread].thread;
  return fibers[thread].stack;
}

// Serves the lanes of a wave that wait at the collective with the lowest code address.
void serve_collective(unsigned wave) {
  const Arrival* const lanes = &arrivals[wave * KS_WAVE];
  const Mask waiting = waves[wave].at_collective;
  const Arrival* first = &lanes[__builtin_ctzl(waiting)];
  for (Mask left = waiting; left; left &= left - 1)
    if (lanes[__builtin_ctzl(left)].site < first->site) first = &lanes[__builtin_ctzl(left)];
  void* frames[KS_WAVE] = {};
  Mask group = 0;
  for (Mask left = waiting; left; left &= left - 1) {
    const unsigned lane = unsigned(__builtin_ctzl(left));
    if (lanes[lane].site != first->site) continue;
    group |= 1ul << lane;
    frames[lane] = lanes[lane].frame;
  }
  first->op(frames, group);
  waves[wave].at_collective &= ~group;
  waves[wave].ready = group;
}

void open_barrier() {
  for (unsigned wave = 0; wave < wave_count; wave++) {
    waves[wave].ready = waves[wave].at_barrier;
    waves[wave].at_barrier = 0;
    if (waves[wave].ready) busy_waves |= 1ul << wave;
  }
}

// The stack to go on with when no lane of `wave` is ready.
__attribute__((noinline)) void* next(unsigned wave) {
  for (;;) {
    if (waves[wave].ready == 0 && waves[wave].at_collective) serve_collective(wave);
    if (waves[wave].ready) return resume(wave * KS_WAVE + pick(waves[wave].ready));
    busy_waves &= ~(1ul << wave);
    if (busy_waves == 0) open_barrier();
    if (busy_waves == 0) return launcher;
    wave = pick(busy_waves);
  }
}

// Takes the current fiber, which waits in `state`, out of its wave's ready lanes.
inline __attribute__((always_inline)) void* leave(void* stack, Mask Wave::* state) {
  Wave& wave = waves[current / KS_WAVE];
  const Mask lane = 1ul << current % KS_WAVE;
  fibers[current].stack = stack;
  wave.ready &= ~lane;
  if (state) wave.*state |= lane;
  return wave.ready ? resume((current & ~(KS_WAVE - 1)) + pick(wave.ready)) : next(current / KS_WAVE);
}

[[noreturn]] void fiber_main() {
  for (;;) {
    kernel(slots);
    ks_end_fiber();  // comes back when the next block starts
  }
}

void prepare_fibers(const unsigned block[3], unsigned threads) {
  for (unsigned i = 0; i < threads; i++) {
    // Different offsets in the upper half page: otherwise all stacks compete for the same cache sets.
    void** top = reinterpret_cast<void**>(KS_STACKS + i * KS_STACK_STRIDE + KS_STACK_BYTES - i % 32 * 64);
    *--top = nullptr;  // the return address of fiber_main, which gives it the alignment of a called function
    *--top = reinterpret_cast<void*>(fiber_main);
    for (int saved = 0; saved < 7; saved++) *--top = nullptr;
    fibers[i].stack = top;
    fibers[i].thread = {KsIndex(i % block[0]), KsIndex(i / block[0] % block[1]), KsIndex(i / (block[0] * block[1]))};
  }
  wave_count = (threads + KS_WAVE - 1) / KS_WAVE;
}

void make_ready(unsigned threads) {
  for (unsigned wave = 0; wave < wave_count; wave++) {
    const unsigned lanes = threads - wave * KS_WAVE;
    waves[wave] = {lanes >= KS_WAVE ? ~0ul : (1ul << lanes) - 1, 0, 0};
  }
  busy_waves = (1ul << wave_count) - 1;
}

// Nobody asked for what lies behind the dynamic LDS, so on a GPU it would be another block's, or not there.
void check_dynamic_lds(unsigned long long used) {
  for (unsigned long long at = used; at < KS_DYNAMIC_LDS_BYTES; at++)
    if (ks_dynamic_lds[at] != 0xff) {
      reinterpret_cast<KsControl*>(KS_CONTROL)->error = KS_LDS_OVERRUN;
      __builtin_trap();
    }
}

void run(const KsLaunch* launch) {
  const unsigned* const grid = launch->grid;
  const unsigned* const block = launch->block;
  const unsigned threads = block[0] * block[1] * block[2];
  const bool as_fibers = launch->flags & KS_FIBERS;
  ks_state.grid_dim = {KsIndex(grid[0]), KsIndex(grid[1]), KsIndex(grid[2])};
  ks_state.block_dim = {KsIndex(block[0]), KsIndex(block[1]), KsIndex(block[2])};
  reverse = launch->flags & KS_REVERSE;
  slots = launch->slots;
  kernel = as_fibers ? ks_kernels[launch->kernel].fiber : ks_kernels[launch->kernel].loop;
  if (as_fibers) prepare_fibers(block, threads);
  if (reverse) memset(ks_dynamic_lds, 0xff, KS_DYNAMIC_LDS_BYTES);
  for (unsigned z = 0; z < grid[2]; z++)
    for (unsigned y = 0; y < grid[1]; y++)
      for (unsigned x = 0; x < grid[0]; x++) {
        ks_state.block = reverse ? KsIndex3{KsIndex(grid[0] - 1 - x), KsIndex(grid[1] - 1 - y), KsIndex(grid[2] - 1 - z)}
                                 : KsIndex3{KsIndex(x), KsIndex(y), KsIndex(z)};
        // All bits set is a NaN: LDS holds nothing of use until the block writes it.
        memset(ks_lds_begin, 0xff, static_cast<unsigned long>(ks_lds_end - ks_lds_begin));
        memset(ks_dynamic_lds, 0xff, launch->dynamic_lds);
        if (!as_fibers) {
          kernel(slots);
          continue;
        }
        make_ready(threads);
        ks_enter_block();
      }
  if (reverse) check_dynamic_lds(launch->dynamic_lds);
}

}  // namespace

extern "C" {

void* ks_first_fiber(void* stack) {
  launcher = stack;
  return next(pick(busy_waves));
}

void* ks_at_end(void* stack) { return leave(stack, nullptr); }

void* ks_at_barrier(void* stack) { return leave(stack, &Wave::at_barrier); }

void* ks_at_collective(void* stack, const void* site, KsWaveOp op, void* frame) {
  arrivals[current] = {site, op, frame};
  return leave(stack, &Wave::at_collective);
}

extern const KsImage ks_image;
const KsImage ks_image = {KS_MAGIC, run, ks_libm, KS_LIBM_NAMES};

}  // extern "C"
