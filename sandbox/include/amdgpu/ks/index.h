// threadIdx, blockIdx, blockDim and gridDim, read from registers and from the dispatch's hidden arguments.
#pragma once
#include <ks/target.h>
#include <ks/vector_types.h>

// Hidden arguments of code object version 5 (LLVM, User Guide for AMDGPU Backend, table "hidden arguments"):
// block counts are 32-bit at offset 0, block sizes 16-bit at offset 12.
KS_DEVICE unsigned ks_grid_blocks(int axis) {
  return ((const __attribute__((address_space(4))) unsigned*)__builtin_amdgcn_implicitarg_ptr())[axis];
}

#define KS_INDEX(Name, get_x, get_y, get_z)                                      \
  struct Name {                                                                  \
    __declspec(property(get = ks_x)) unsigned x;                                 \
    __declspec(property(get = ks_y)) unsigned y;                                 \
    __declspec(property(get = ks_z)) unsigned z;                                 \
    __device__ __attribute__((always_inline)) unsigned ks_x() const { return get_x; } \
    __device__ __attribute__((always_inline)) unsigned ks_y() const { return get_y; } \
    __device__ __attribute__((always_inline)) unsigned ks_z() const { return get_z; } \
    __device__ operator dim3() const { return dim3(ks_x(), ks_y(), ks_z()); }    \
    __device__ operator uint3() const { return make_uint3(ks_x(), ks_y(), ks_z()); } \
  };

KS_INDEX(KsThreadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
         __builtin_amdgcn_workitem_id_z())
KS_INDEX(KsBlockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
         __builtin_amdgcn_workgroup_id_z())
KS_INDEX(KsBlockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
         __builtin_amdgcn_workgroup_size_z())
KS_INDEX(KsGridDim, ks_grid_blocks(0), ks_grid_blocks(1), ks_grid_blocks(2))
#undef KS_INDEX

extern const __device__ __attribute__((weak)) KsThreadIdx threadIdx;
extern const __device__ __attribute__((weak)) KsBlockIdx blockIdx;
extern const __device__ __attribute__((weak)) KsBlockDim blockDim;
extern const __device__ __attribute__((weak)) KsGridDim gridDim;

#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z

// A wave is 64 lanes on every CDNA GPU.
static constexpr __device__ int warpSize = 64;

KS_DEVICE unsigned ks_linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

KS_DEVICE unsigned ks_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

KS_DEVICE unsigned __lane_id() { return ks_lane(); }
