// Types of all compilations: launch geometry, small vectors, handles and error codes.
#pragma once

#ifdef RPL_HIP_CPU
// One slot for each argument, whatever its type: so the runtime can call any kernel.
#define __global__ __attribute__((global, ms_abi))
#define __launch_bounds__(...)
#else
#define __global__ __attribute__((global))
// As HIP does it: clang's own launch_bounds attribute is for CUDA only.
#define __launch_bounds__(threads, ...) \
  __attribute__((amdgpu_flat_work_group_size(1, threads))) __VA_OPT__(__attribute__((amdgpu_waves_per_eu(__VA_ARGS__))))
#endif
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define HIP_KERNEL_NAME(...) __VA_ARGS__

struct dim3 {
  uint32_t x, y, z;
  constexpr __host__ __device__ dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};

#define RPL_HIP_VECTOR2(name, scalar)                                                                 \
  struct __align__(2 * sizeof(scalar)) name { scalar x, y; };                                          \
  static inline __host__ __device__ name make_##name(scalar x, scalar y) { return name{x, y}; }         \
  static inline __host__ __device__ name operator+(name a, name b) { return name{a.x + b.x, a.y + b.y}; } \
  static inline __host__ __device__ name operator-(name a, name b) { return name{a.x - b.x, a.y - b.y}; } \
  static inline __host__ __device__ name operator*(name a, name b) { return name{a.x * b.x, a.y * b.y}; } \
  static inline __host__ __device__ name& operator+=(name& a, name b) { return a = a + b; }
#define RPL_HIP_VECTOR4(name, scalar)                                                                 \
  struct __align__(4 * sizeof(scalar)) name { scalar x, y, z, w; };                                    \
  static inline __host__ __device__ name make_##name(scalar x, scalar y, scalar z, scalar w) {          \
    return name{x, y, z, w};                                                                           \
  }                                                                                                    \
  static inline __host__ __device__ name operator+(name a, name b) {                                    \
    return name{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};                                            \
  }                                                                                                    \
  static inline __host__ __device__ name operator-(name a, name b) {                                    \
    return name{a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};                                            \
  }                                                                                                    \
  static inline __host__ __device__ name operator*(name a, name b) {                                    \
    return name{a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};                                            \
  }                                                                                                    \
  static inline __host__ __device__ name& operator+=(name& a, name b) { return a = a + b; }

RPL_HIP_VECTOR2(float2, float)
RPL_HIP_VECTOR4(float4, float)
RPL_HIP_VECTOR2(double2, double)
RPL_HIP_VECTOR2(int2, int)
RPL_HIP_VECTOR4(int4, int)
RPL_HIP_VECTOR2(uint2, unsigned)
RPL_HIP_VECTOR4(uint4, unsigned)
#undef RPL_HIP_VECTOR2
#undef RPL_HIP_VECTOR4

struct ihipStream_t;
struct ihipEvent_t;
typedef ihipStream_t* hipStream_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef ihipEvent_t* hipEvent_t;

typedef enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidSymbol = 13,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorInvalidDevice = 101,
  hipErrorFileNotFound = 301,
  hipErrorNotFound = 500,
} hipError_t;

typedef enum hipMemcpyKind {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
} hipMemcpyKind;

struct hipDeviceProp_t {
  char name[256];
  char gcnArchName[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int warpSize, maxThreadsPerBlock, multiProcessorCount, clockRate, major, minor;
};

#define hipStreamDefault 0x00
#define hipStreamNonBlocking 0x01
#define hipHostMallocDefault 0x0
#define hipEventDefault 0x0
#define hipEventDisableTiming 0x2
#define HIP_SYMBOL(name) (&(name))
static constexpr int warpSize = 64;
