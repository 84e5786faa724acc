// What the stand-in offers of HIP, in one program that checks its own results.
#include <hip/hip_runtime.h>

#include <cstdio>

#include "amount.h"

#define CHECK(call)                                                 \
  if ((call) != hipSuccess) {                                       \
    std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(call)); \
    return 1;                                                       \
  }

__constant__ float weights[4];
__device__ int blocks_seen;

template <typename T, int N> __global__ __launch_bounds__(256) void weigh(T* out, const T* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T sum = 0;
#pragma unroll 4
  for (int k = 0; k < N; ++k) sum += in[i] * weights[k % 4];
  out[i] = sqrtf(sum) + max(1, 2);
}

// Sums `in` in one workgroup of 256 after turning each block around in LDS of dynamic size.
__global__ void total(float* out, const float* in) {
  extern __shared__ float tile[];
  __shared__ float partial[4];
  int t = threadIdx.x;
  tile[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  float v = tile[blockDim.x - 1 - t];
  for (int d = 32; d > 0; d >>= 1) v += __shfl_down(v, d);
  if (t % 64 == 0) partial[t / 64] = v;
  __syncthreads();
  if (t < 64) {
    float w = t < 4 ? partial[t] : 0.0f;
    for (int d = 2; d > 0; d >>= 1) w += __shfl_xor(w, d);
    if (t == 0) {
      atomicAdd(out, w);
      atomicAdd(&blocks_seen, 1);
    }
  }
}

__global__ void places(unsigned long long* odd, int* corners, Amount amount) {
  unsigned long long lanes = __ballot(threadIdx.x % 2);
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    *odd = lanes;
    corners[blockIdx.y * gridDim.x + blockIdx.x] = amount.value + blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z;
  }
}

int main(int argc, char**) {
  const int n = 1024;
  float in[n], given[4] = {1, 2, 3, 4}, *a, *b, *sum, found;
  for (int i = 0; i < n; ++i) in[i] = i % 8 == 0 ? 0.0f : 5.0f;
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), given, sizeof(given)));
  CHECK(hipMalloc(&a, sizeof(in)));
  CHECK(hipMalloc((void**)&b, sizeof(in)));
  CHECK(hipMalloc(&sum, sizeof(float)));
  CHECK(hipMemcpy(a, in, sizeof(in), hipMemcpyHostToDevice));
  CHECK(hipMemset(sum, 0, sizeof(float)));
  weigh<float, 8><<<dim3((n + 255) / 256), 256>>>(b, a, n);
  hipStream_t stream;
  CHECK(hipStreamCreate(&stream));
  total<<<n / 256,
          256, 256 * sizeof(float), stream>>>(sum, b);
  CHECK(hipMemcpy(&found, sum, sizeof(found), hipMemcpyDeviceToHost));
  int seen;
  CHECK(hipMemcpyFromSymbol(&seen, HIP_SYMBOL(blocks_seen), sizeof(seen)));
  std::printf("total %.1f of %d blocks <<<\n", found, seen);

  unsigned long long* odd;
  int* corners;
  CHECK(hipMallocManaged(&odd, sizeof(*odd)));
  CHECK(hipMallocManaged(&corners, 6 * sizeof(int)));
  hipLaunchKernelGGL(places, dim3(3, 2), dim3(64, 2), 0, 0, odd, corners, Amount{AMOUNT});
  std::printf("odd %llx corner %d\n", *odd, corners[5]);

  places<<<1, 2048>>>(odd, corners, Amount{0});
  std::printf("%s\n", hipGetErrorString(hipGetLastError()));
  return 0;
}
