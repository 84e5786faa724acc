#include <hip/hip_runtime.h>

extern "C" __global__ void grow(float* values) { values[threadIdx.x] = values[threadIdx.x] + 1.0f; }
