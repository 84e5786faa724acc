// What a launch needs of HIP, for a compiler without ROCm.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
typedef struct { unsigned x, y, z; } dim3;
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = 0);
extern "C" int __hipPopCallConfiguration(dim3*, dim3*, unsigned long*, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
