// threadIdx, blockIdx, blockDim and gridDim, read from the runtime's state.
#pragma once
#include <ks/target.h>
#include <ks/vector_types.h>

#define KS_INDEX(Name, field)                                                             \
  struct Name {                                                                           \
    __declspec(property(get = ks_x)) unsigned x;                                          \
    __declspec(property(get = ks_y)) unsigned y;                                          \
    __declspec(property(get = ks_z)) unsigned z;                                          \
    __attribute__((always_inline)) unsigned ks_x() const { return unsigned(ks_state.field.x); } \
    __attribute__((always_inline)) unsigned ks_y() const { return unsigned(ks_state.field.y); } \
    __attribute__((always_inline)) unsigned ks_z() const { return unsigned(ks_state.field.z); } \
    operator dim3() const { return dim3(ks_x(), ks_y(), ks_z()); }                        \
    operator uint3() const { return make_uint3(ks_x(), ks_y(), ks_z()); }                 \
  };
KS_INDEX(KsThreadIdx, thread)
KS_INDEX(KsBlockIdx, block)
KS_INDEX(KsBlockDim, block_dim)
KS_INDEX(KsGridDim, grid_dim)
#undef KS_INDEX

inline constexpr KsThreadIdx threadIdx{};
inline constexpr KsBlockIdx blockIdx{};
inline constexpr KsBlockDim blockDim{};
inline constexpr KsGridDim gridDim{};

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
