// The device language, for the GPU and for the CPU: atomics, shuffles, float mathematics.
#pragma once

#define RPL_HIP_ATOMIC(name, builtin)                                                          \
  template <class T> static __device__ __forceinline__ T name(T* place, T value) {               \
    return builtin(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                    \
  }
RPL_HIP_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
RPL_HIP_ATOMIC(atomicMin, __hip_atomic_fetch_min)
RPL_HIP_ATOMIC(atomicMax, __hip_atomic_fetch_max)
RPL_HIP_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
RPL_HIP_ATOMIC(atomicOr, __hip_atomic_fetch_or)
RPL_HIP_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
RPL_HIP_ATOMIC(atomicExch, __hip_atomic_exchange)
#undef RPL_HIP_ATOMIC
template <class T> static __device__ __forceinline__ T atomicCAS(T* place, T expected, T value) {
  __hip_atomic_compare_exchange_strong(place, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

// Lanes outside of the width's segment keep their own value, as in HIP.
template <class T> static __device__ __forceinline__ T __shfl(T value, int source, int width = 64) {
  return rpl_hip::from_lane(value, (source & (width - 1)) + (rpl_hip::lane() & ~(width - 1)));
}
template <class T> static __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = 64) {
  int self = rpl_hip::lane(), other = self ^ mask;
  return rpl_hip::from_lane(value, other >= ((self + width) & ~(width - 1)) ? self : other);
}
template <class T> static __device__ __forceinline__ T __shfl_down(T value, unsigned by, int width = 64) {
  int self = rpl_hip::lane();
  return rpl_hip::from_lane(value, int((self & (width - 1)) + by) >= width ? self : self + int(by));
}
template <class T> static __device__ __forceinline__ T __shfl_up(T value, unsigned by, int width = 64) {
  int self = rpl_hip::lane();
  return rpl_hip::from_lane(value, (self & (width - 1)) < int(by) ? self : self - int(by));
}
static __device__ __forceinline__ int __any(int predicate) { return __ballot(predicate) != 0; }
static __device__ __forceinline__ int __all(int predicate) { return __ballot(predicate == 0) == 0; }

#define RPL_HIP_MATH1(name) \
  static __device__ __forceinline__ float name##f(float x) { return __builtin_##name##f(x); }
RPL_HIP_MATH1(sqrt)
RPL_HIP_MATH1(exp)
RPL_HIP_MATH1(exp2)
RPL_HIP_MATH1(log)
RPL_HIP_MATH1(log2)
RPL_HIP_MATH1(log10)
RPL_HIP_MATH1(sin)
RPL_HIP_MATH1(cos)
RPL_HIP_MATH1(fabs)
RPL_HIP_MATH1(floor)
RPL_HIP_MATH1(ceil)
RPL_HIP_MATH1(trunc)
RPL_HIP_MATH1(rint)
#undef RPL_HIP_MATH1
static __device__ __forceinline__ float fminf(float a, float b) { return __builtin_fminf(a, b); }
static __device__ __forceinline__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
static __device__ __forceinline__ float powf(float x, float y) { return __builtin_powf(x, y); }
static __device__ __forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static __device__ __forceinline__ double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
static __device__ __forceinline__ double sqrt(double x) { return __builtin_sqrt(x); }
static __device__ __forceinline__ double fabs(double x) { return __builtin_fabs(x); }
static __device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static __device__ __forceinline__ float __expf(float x) { return __builtin_expf(x); }
static __device__ __forceinline__ float __logf(float x) { return __builtin_logf(x); }
