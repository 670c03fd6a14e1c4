// Cooperative groups: the block, and tiles of a wave. A grid cannot be synchronised from inside a kernel here;
// that takes another launch of the plan.
#pragma once
#include <hip/hip_runtime.h>

namespace cooperative_groups {

class thread_block {
 public:
  KS_HD void sync() const { __syncthreads(); }
  KS_HD unsigned thread_rank() const { return ks_linear_thread(); }
  KS_HD unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  KS_HD unsigned num_threads() const { return size(); }
  KS_HD dim3 group_index() const { return blockIdx; }
  KS_HD dim3 thread_index() const { return threadIdx; }
  KS_HD dim3 group_dim() const { return blockDim; }
  KS_HD dim3 dim_threads() const { return blockDim; }
};
KS_INLINE thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  KS_HD unsigned long long block_rank() const {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  KS_HD unsigned long long num_blocks() const { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  KS_HD unsigned long long thread_rank() const { return block_rank() * thread_block().size() + ks_linear_thread(); }
  KS_HD unsigned long long size() const { return num_blocks() * thread_block().size(); }
};
KS_INLINE grid_group this_grid() { return {}; }

// N neighbouring lanes of a wave, N a power of two up to 64.
template <unsigned N, class Parent = thread_block> class thread_block_tile {
  static_assert(N > 0 && N <= 64 && (N & (N - 1)) == 0, "a tile is a power of two of at most 64 lanes");

 public:
  KS_HD unsigned thread_rank() const { return ks_linear_thread() % N; }
  KS_HD static constexpr unsigned size() { return N; }
  KS_HD static constexpr unsigned num_threads() { return N; }
  KS_HD unsigned meta_group_rank() const { return ks_linear_thread() / N; }
  KS_HD unsigned meta_group_size() const { return (thread_block().size() + N - 1) / N; }
  KS_HD void sync() const { __syncwarp(); }
  template <class T> KS_HD T shfl(T x, int source) const { return __shfl(x, source, int(N)); }
  template <class T> KS_HD T shfl_up(T x, unsigned delta) const { return __shfl_up(x, delta, int(N)); }
  template <class T> KS_HD T shfl_down(T x, unsigned delta) const { return __shfl_down(x, delta, int(N)); }
  template <class T> KS_HD T shfl_xor(T x, unsigned mask) const { return __shfl_xor(x, int(mask), int(N)); }
  KS_HD unsigned long long ballot(int predicate) const {
    const unsigned long long all = __ballot(predicate);
    if constexpr (N == 64) return all;
    else return all >> (ks_lane() & ~(N - 1)) & ((1ull << N) - 1);
  }
  KS_HD int any(int predicate) const { return ballot(predicate) != 0; }
  KS_HD int all(int predicate) const { return ballot(!predicate) == 0; }
};
template <unsigned N, class Parent> KS_INLINE thread_block_tile<N, Parent> tiled_partition(const Parent&) { return {}; }

template <class Group> KS_INLINE void sync(const Group& group) { group.sync(); }
template <class Group> KS_INLINE auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group> KS_INLINE auto group_size(const Group& group) { return group.size(); }

template <class T> struct plus {
  KS_HD T operator()(T a, T b) const { return a + b; }
};
template <class T> struct greater {
  KS_HD T operator()(T a, T b) const { return b < a ? a : b; }
};
template <class T> struct less {
  KS_HD T operator()(T a, T b) const { return a < b ? a : b; }
};

// The values of a tile's lanes combined, on every lane.
template <unsigned N, class Parent, class T, class F>
KS_INLINE T reduce(const thread_block_tile<N, Parent>& tile, T x, F combine) {
  for (unsigned step = N / 2; step > 0; step /= 2) x = combine(x, tile.shfl_xor(x, step));
  return x;
}

}  // namespace cooperative_groups
