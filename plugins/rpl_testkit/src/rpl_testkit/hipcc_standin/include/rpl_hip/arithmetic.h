// Mathematics of the host, and min and max of both: overloads, as a template would be ambiguous with std's.
#pragma once

// Declared as the C library does. <cmath> would do, but takes longer to compile than most kernels: a source
// that wants std::sqrt includes it.
extern "C" {
#define RPL_HIP_MATH1(name) float name##f(float) noexcept(true);
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
float fminf(float, float) noexcept(true);
float fmaxf(float, float) noexcept(true);
float powf(float, float) noexcept(true);
float fmaf(float, float, float) noexcept(true);
double fma(double, double, double) noexcept(true);
double sqrt(double) noexcept(true);
double fabs(double) noexcept(true);
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#define RPL_HIP_MIN_MAX(type)                                                                    \
  static inline __host__ __device__ type min(type a, type b) { return b < a ? b : a; }             \
  static inline __host__ __device__ type max(type a, type b) { return a < b ? b : a; }
RPL_HIP_MIN_MAX(int)
RPL_HIP_MIN_MAX(unsigned)
RPL_HIP_MIN_MAX(long)
RPL_HIP_MIN_MAX(unsigned long)
RPL_HIP_MIN_MAX(long long)
RPL_HIP_MIN_MAX(unsigned long long)
RPL_HIP_MIN_MAX(float)
RPL_HIP_MIN_MAX(double)
#undef RPL_HIP_MIN_MAX
