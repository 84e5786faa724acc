// What these kernels need of a GPU, without headers of a runtime.
#pragma once
#ifndef VERSION
#define VERSION 0
#endif
#define KERNEL __attribute__((global))
#define DEVICE __attribute__((device)) inline
#define SHARED __attribute__((shared)) static
#define ITEM __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
constexpr unsigned kItems = 256;
typedef _Float16 half;
// Right versions are numbered from 1, wrong ones from 101.
constexpr bool version(int number) { return VERSION == number; }

DEVICE void meet() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
}
// As many workgroups as were launched: a hidden argument (LLVM AMDGPUUsage, "Code Object V5 Metadata").
DEVICE unsigned groups() { return ((const unsigned __attribute__((address_space(4)))*)__builtin_amdgcn_implicitarg_ptr())[0]; }
template <class T>
DEVICE T added(T* to, T value) { return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
DEVICE unsigned lane() { return __builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0)); }
DEVICE float of_lane(float value, unsigned from) {
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(4 * from, __builtin_bit_cast(int, value)));
}
DEVICE float most(float a, float b) { return a > b ? a : b; }
DEVICE float power2(float x) { return __builtin_amdgcn_exp2f(x); }
// In two parts, so that large exponents keep their last places.
DEVICE float exponential(float x) {
  const float whole = __builtin_rintf(x * 1.44269504f);
  const float rest = __builtin_fmaf(whole, -1.42860677e-6f, __builtin_fmaf(whole, -0.693145752f, x));
  return __builtin_amdgcn_ldexpf(power2(rest * 1.44269504f), (int)(whole < -200 ? -200 : whole));
}
