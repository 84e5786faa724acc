#include <hip/hip_runtime.h>

#define THREADS 256
constexpr int kTile = 16;

// __global__ void commented_out(float *x) {}
__global__ void saxpy(float a, const float *x, float *y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void __launch_bounds__(64) already_bounded(float *x) { x[threadIdx.x] = 0.0f; }

template <typename T>
__global__ void transpose(const T *in, T *out, int n)
{
  out[threadIdx.x * n + threadIdx.y] = in[threadIdx.y * n + threadIdx.x];
}

__global__ void any_size(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1.0f; }

__global__ void by_address(float *x) { x[threadIdx.x] *= 2.0f; }

int main(int argc, char **argv)
{
  float *x = nullptr, *y = nullptr;
  dim3 block(kTile, kTile);
  saxpy<<<4096, THREADS>>>(2.0f, x, y, 1 << 20);
  saxpy<<<1, 64>>>(2.0f, x, y, 64);
  hipLaunchKernelGGL(already_bounded, dim3(1), dim3(64), 0, 0, x);
  transpose<float><<<dim3(64, 64), block, 0, 0>>>(x, y, 1024);
  any_size<<<1, argc>>>(x, argc);
  hipLaunchKernel((const void *)by_address, dim3(1), dim3(64), nullptr, 0, 0);
  return 0;
}
