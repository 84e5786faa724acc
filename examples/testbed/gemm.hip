// C = A * B in single precision, once without and once with tiles in LDS. Argument: rows and columns, by 16.
#include "check.h"

constexpr unsigned kTile = 16;

__global__ void gemm_naive(const float* a, const float* b, float* c, unsigned n) {
  const unsigned row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (unsigned k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

__global__ void gemm_tiled(const float* a, const float* b, float* c, unsigned n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile + 1];
  const unsigned row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (unsigned first = 0; first < n; first += kTile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
    __syncthreads();
    for (unsigned k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main(int count, char** words) {
  const unsigned n = size_argument(count, words, 96) / kTile * kTile;
  const std::vector<float> a = numbers(size_t{n} * n, 1), b = numbers(size_t{n} * n, 2);
  std::vector<double> expected(size_t{n} * n);
  for (unsigned i = 0; i < n; ++i)
    for (unsigned k = 0; k < n; ++k)
      for (unsigned j = 0; j < n; ++j) expected[i * n + j] += static_cast<double>(a[i * n + k]) * b[k * n + j];
  const float *left = on_device(a), *right = on_device(b);
  float* c = on_device(std::vector<float>(size_t{n} * n));
  const dim3 grid(n / kTile, n / kTile), block(kTile, kTile);
  gemm_naive<<<grid, block>>>(left, right, c, n);
  const int naive = report("gemm_naive", on_host(c, expected.size()), expected, 1e-6 * n);
  CHECK(hipMemset(c, 0xff, expected.size() * sizeof(float)));
  gemm_tiled<<<grid, block>>>(left, right, c, n);
  return naive + report("gemm_tiled", on_host(c, expected.size()), expected, 1e-6 * n);
}
