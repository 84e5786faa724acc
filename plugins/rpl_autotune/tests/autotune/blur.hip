#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define TILE 16

// Blurs a little, TILE * TILE work-items at a time. It is wrong for a TILE of 8.
__global__ void blur(const float* in, float* out, int n) {
  __shared__ float tile[TILE * TILE];
  int at = threadIdx.y * TILE + threadIdx.x, i = blockIdx.x * TILE * TILE + at;
  tile[at] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n) out[i] = tile[at] + (TILE == 8 ? 0.25f : 0.5f) * in[i];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1000;
  float* values = static_cast<float*>(std::malloc(n * sizeof(float)));
  for (int i = 0; i < n; ++i) values[i] = float(i % 101);
  float *in, *out;
  if (hipMalloc(&in, n * sizeof(float)) != hipSuccess || hipMalloc(&out, n * sizeof(float)) != hipSuccess) return 1;
  if (hipMemcpy(in, values, n * sizeof(float), hipMemcpyHostToDevice) != hipSuccess) return 1;
  const dim3 block(TILE, TILE);
  const int blocks = (n + TILE * TILE - 1) / (TILE * TILE);
  for (int step = 0; step < 10; ++step) blur<<<blocks, block>>>(in, out, n);
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  if (hipMemcpy(values, out, n * sizeof(float), hipMemcpyDeviceToHost) != hipSuccess) return 1;
  std::FILE* file = std::fopen("blur.out", "wb");
  return file && std::fwrite(values, sizeof(float), n, file) == size_t(n) && std::fclose(file) == 0 ? 0 : 1;
}
