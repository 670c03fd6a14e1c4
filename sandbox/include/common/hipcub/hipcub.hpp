// Block-wide and wave-wide reductions and scans under hipCUB's names. Results are as its documentation has them
// (a reduction's on the first thread of the block or the wave); how they come about is our own.
#pragma once
#include <hip/hip_runtime.h>

namespace hipcub {

struct Sum {
  template <class T> KS_HD T operator()(const T& a, const T& b) const { return a + b; }
};
struct Max {
  template <class T> KS_HD T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct Min {
  template <class T> KS_HD T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING, BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

// Combines the first `valid` of `width` neighbouring lanes; on the first lane.
template <class T, class F> KS_INLINE T ks_wave_reduce(T x, F combine, int width, int valid) {
  const int lane = int(ks_lane()) % width;
  for (int step = 1; step < width; step *= 2) {
    const T other = __shfl_down(x, unsigned(step), width);
    if (lane + step < valid) x = combine(x, other);
  }
  return x;
}

template <class T, int Width = 64, int = 1> class WarpReduce {
 public:
  struct TempStorage {};
  KS_HD explicit WarpReduce(TempStorage&) {}
  template <class F> KS_HD T Reduce(T x, F combine, int valid = Width) { return ks_wave_reduce(x, combine, Width, valid); }
  KS_HD T Sum(T x, int valid = Width) { return Reduce(x, hipcub::Sum(), valid); }
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 1>
class BlockReduce {
  static constexpr int threads = X * Y * Z, waves = (threads + 63) / 64;

 public:
  struct TempStorage {
    T of_wave[waves];
  };
  KS_HD explicit BlockReduce(TempStorage& storage) : storage(storage) {}

  template <class F> KS_HD T Reduce(T x, F combine, int valid = threads) {
    const int thread = int(ks_linear_thread()), wave = thread / 64;
    x = ks_wave_reduce(x, combine, 64, (valid < threads ? valid : threads) - wave * 64);
    if (thread % 64 == 0) storage.of_wave[wave] = x;
    __syncthreads();
    if (thread == 0)
      for (int other = 1; other * 64 < valid && other < waves; other++) x = combine(x, storage.of_wave[other]);
    return x;
  }
  KS_HD T Sum(T x, int valid = threads) { return Reduce(x, hipcub::Sum(), valid); }
  template <int N, class F> KS_HD T Reduce(T (&items)[N], F combine) {
    T x = items[0];
    for (int i = 1; i < N; i++) x = combine(x, items[i]);
    return Reduce(x, combine);
  }
  template <int N> KS_HD T Sum(T (&items)[N]) { return Reduce(items, hipcub::Sum()); }

 private:
  TempStorage& storage;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 1> class BlockScan {
  static constexpr int threads = X * Y * Z, waves = (threads + 63) / 64;

 public:
  struct TempStorage {
    T of_wave[waves];
  };
  KS_HD explicit BlockScan(TempStorage& storage) : storage(storage) {}

  template <class F> KS_HD void InclusiveScan(T x, T& result, F combine, T& total) {
    const int thread = int(ks_linear_thread()), wave = thread / 64, lane = thread % 64;
    for (int step = 1; step < 64; step *= 2) {
      const T other = __shfl_up(x, unsigned(step));
      if (lane >= step) x = combine(other, x);
    }
    if (lane == 63 || thread == threads - 1) storage.of_wave[wave] = x;
    __syncthreads();
    T sum = storage.of_wave[0];
    for (int other = 1; other < waves; other++) {
      if (other == wave) x = combine(sum, x);
      sum = combine(sum, storage.of_wave[other]);
    }
    result = x;
    total = sum;
  }
  template <class F> KS_HD void InclusiveScan(T x, T& result, F combine) {
    T total;
    InclusiveScan(x, result, combine, total);
  }
  KS_HD void InclusiveSum(T x, T& result) { InclusiveScan(x, result, hipcub::Sum()); }
  KS_HD void InclusiveSum(T x, T& result, T& total) { InclusiveScan(x, result, hipcub::Sum(), total); }

  template <class F> KS_HD void ExclusiveScan(T x, T& result, T initial, F combine, T& total) {
    T inclusive;
    InclusiveScan(x, inclusive, combine, total);
    const int thread = int(ks_linear_thread()), wave = thread / 64;
    // The value before this thread's: its neighbour's, or the last one of the wave before.
    const T neighbour = __shfl_up(inclusive, 1u);
    T before = initial;
    if (thread % 64) before = combine(initial, neighbour);
    else
      for (int other = 0; other < wave; other++) before = combine(before, storage.of_wave[other]);
    result = before;
  }
  template <class F> KS_HD void ExclusiveScan(T x, T& result, T initial, F combine) {
    T total;
    ExclusiveScan(x, result, initial, combine, total);
  }
  KS_HD void ExclusiveSum(T x, T& result) { ExclusiveScan(x, result, T(0), hipcub::Sum()); }
  KS_HD void ExclusiveSum(T x, T& result, T& total) { ExclusiveScan(x, result, T(0), hipcub::Sum(), total); }

 private:
  TempStorage& storage;
};

}  // namespace hipcub
