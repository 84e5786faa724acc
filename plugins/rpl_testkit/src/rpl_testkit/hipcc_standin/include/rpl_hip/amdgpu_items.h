// Work-items of the GPU by clang's builtins: indices, barriers, and what lanes tell each other.
#pragma once

namespace rpl_hip {
struct Index { uint32_t x, y, z; };
static __device__ __forceinline__ Index thread_index() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
}
static __device__ __forceinline__ Index block_index() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()};
}
static __device__ __forceinline__ Index block_size() {
  return {__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z()};
}
// The first hidden arguments are the numbers of workgroups (LLVM AMDGPUUsage, "V5 Implicit Kernel Argument").
static __device__ __forceinline__ Index grid_size() {
  auto hidden = (const __attribute__((address_space(4))) uint32_t*)__builtin_amdgcn_implicitarg_ptr();
  return {hidden[0], hidden[1], hidden[2]};
}
static __device__ __forceinline__ int lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
template <class T> static __device__ __forceinline__ T from_lane(T value, int source) {
  int words[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned i = 0; i < sizeof(words) / 4; ++i) words[i] = __builtin_amdgcn_ds_bpermute(4 * source, words[i]);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
}  // namespace rpl_hip
#define threadIdx (::rpl_hip::thread_index())
#define blockIdx (::rpl_hip::block_index())
#define blockDim (::rpl_hip::block_size())
#define gridDim (::rpl_hip::grid_size())

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
static __device__ __forceinline__ uint64_t __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
