// Just enough of HIP's device language for clang without ROCm; force-included when the corpus is compiled.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
// As HIP does it: clang's own launch_bounds attribute is for CUDA only.
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
typedef unsigned long size_t;
typedef unsigned int uint32_t;
typedef int int32_t;
struct Dim { unsigned x, y, z; };
#define threadIdx (Dim{__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), 0u})
#define blockIdx (Dim{__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), 0u})
#define blockDim (Dim{__builtin_amdgcn_workgroup_size_x(), 1u, 1u})
#define gridDim (Dim{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(), 1u, 1u})
#define warpSize 64
struct float4 { float x, y, z, w; };
static __device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ inline void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ inline float atomicAdd(float* p, float v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
static __device__ inline int __shfl_xor(int v, int m) {
  return __builtin_amdgcn_ds_bpermute(4 * (int(__builtin_amdgcn_workitem_id_x()) ^ m), v);
}
static __device__ inline unsigned long long __ballot(int p) { return __builtin_amdgcn_ballot_w64(p != 0); }
static __device__ inline float sqrtf(float x) { return __builtin_sqrtf(x); }
static __device__ inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
