// What a kernel compiled for the CPU sees of the device: where it is, barriers, wave collectives.
//
// Threads of a block are fibers of one OS thread, switched only inside the two barrier calls, so plain
// loads and stores are atomic with respect to other threads of the grid.
#pragma once
#include <ks/abi.h>

#define KS_INLINE static inline __attribute__((always_inline, unused))

// An own type keeps stores through `int*` and `unsigned*` from forcing a reload of the indices.
enum class KsIndex : unsigned {};

struct KsIndex3 {
  KsIndex x, y, z;
};

struct KsState {
  KsIndex3 thread, block, block_dim, grid_dim;
};

extern "C" {
extern KsState ks_state;

// Waits until every thread of the block that has not returned waits too.
void ks_barrier() __attribute__((convergent));

// Waits for the wave's other lanes, then has `op` run once over the frames of the lanes that wait at
// the same call (bit i of `active`: lane i). Lanes waiting at different calls are served in the order
// of their code addresses, which is how a wave reconverges after a divergent branch or loop.
typedef void (*KsWaveOp)(void* const frames[KS_WAVE], unsigned long active);
void ks_wave_barrier(KsWaveOp op, void* frame) __attribute__((convergent));
}

KS_INLINE unsigned ks_linear_thread() {
  const KsState& s = ks_state;
  return unsigned(s.thread.x) +
         unsigned(s.block_dim.x) * (unsigned(s.thread.y) + unsigned(s.block_dim.y) * unsigned(s.thread.z));
}

KS_INLINE unsigned ks_lane() { return ks_linear_thread() % KS_WAVE; }
