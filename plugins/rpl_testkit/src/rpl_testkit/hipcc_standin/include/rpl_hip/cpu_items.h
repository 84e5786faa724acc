// Work-items on the CPU: what one does alone is plain code, for the rest it asks the runtime.
#pragma once
#include "services.h"

extern "C" {
__device__ __attribute__((weak, used)) rpl_hip::Services* rpl_hip_services;
// LDS whose size the launch tells: all arrays of that kind lie here (see cpu_library in passes.py).
__device__ __attribute__((weak, used, aligned(64))) unsigned char rpl_hip_lds[rpl_hip::kLdsBytes];
}
#define threadIdx (::rpl_hip_services->thread)
#define blockIdx (::rpl_hip_services->block)
#define blockDim (::rpl_hip_services->block_size)
#define gridDim (::rpl_hip_services->grid_size)

namespace rpl_hip {
static __device__ __forceinline__ int lane() { return int(rpl_hip_services->own_lane()); }
template <class T> static __device__ __forceinline__ T from_lane(T value, int source) {
  static_assert(sizeof(T) <= 16);
  unsigned round = rpl_hip_services->exchange(&value, sizeof(T));
  rpl_hip_services->given(unsigned(source), round, &value, sizeof(T));
  return value;
}
}  // namespace rpl_hip

static __device__ __forceinline__ void __syncthreads() { ::rpl_hip_services->wait_for_block(); }
static __device__ __forceinline__ void __threadfence() {}
static __device__ __forceinline__ void __threadfence_block() {}
static __device__ __forceinline__ uint64_t __ballot(int predicate) {
  int lane = predicate != 0;
  unsigned round = ::rpl_hip_services->exchange(&lane, sizeof(lane));
  uint64_t found = 0;
  for (unsigned i = 0; i < 64; ++i)
    if (::rpl_hip_services->given(i, round, &lane, sizeof(lane)) && lane) found |= uint64_t(1) << i;
  return found;
}
