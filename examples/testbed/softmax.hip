// Softmax over rows that several workgroups share: they meet in atomics. Arguments: rows, columns.
#include "check.h"

constexpr unsigned kThreads = 256, kParts = 2;

// Integers that are ordered as the floats are.
__device__ int ordered(float value) {
  const int bits = __float_as_int(value);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}
__device__ float unordered(int bits) { return __int_as_float(bits < 0 ? bits ^ 0x7fffffff : bits); }

__global__ void row_maximum(const float* values, int* most, unsigned columns) {
  float own = -INFINITY;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < columns; i += kParts * kThreads)
    own = fmaxf(own, values[blockIdx.y * columns + i]);
  atomicMax(&most[blockIdx.y], ordered(own));
}

__global__ void row_sum(const float* values, const int* most, float* sums, unsigned columns) {
  const float top = unordered(most[blockIdx.y]);
  float own = 0;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < columns; i += kParts * kThreads)
    own += expf(values[blockIdx.y * columns + i] - top);
  for (unsigned distance = warpSize / 2; distance > 0; distance /= 2) own += __shfl_down(own, distance);
  if (threadIdx.x % warpSize == 0) atomicAdd(&sums[blockIdx.y], own);
}

__global__ void row_normalise(float* values, const int* most, const float* sums, unsigned columns) {
  const float top = unordered(most[blockIdx.y]), sum = sums[blockIdx.y];
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < columns; i += kParts * kThreads) {
    float* place = &values[blockIdx.y * columns + i];
    *place = expf(*place - top) / sum;
  }
}

int main(int count, char** words) {
  const unsigned rows = size_argument(count, words, 32);
  const unsigned columns = count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 1000;
  std::vector<float> given = numbers(size_t{rows} * columns, 3);
  for (float& value : given) value *= 10;
  std::vector<double> expected(given.begin(), given.end());
  for (unsigned row = 0; row < rows; ++row) {
    double sum = 0;
    for (unsigned i = 0; i < columns; ++i) sum += std::exp(expected[row * columns + i]);
    for (unsigned i = 0; i < columns; ++i) expected[row * columns + i] = std::exp(expected[row * columns + i]) / sum;
  }
  float* values = on_device(given);
  int* most = on_device(std::vector<int>(rows, INT32_MIN));
  float* sums = on_device(std::vector<float>(rows));
  const dim3 grid(kParts, rows);
  row_maximum<<<grid, kThreads>>>(values, most, columns);
  row_sum<<<grid, kThreads>>>(values, most, sums, columns);
  row_normalise<<<grid, kThreads>>>(values, most, sums, columns);
  return report("softmax", on_host(values, expected.size()), expected, 1e-6);
}
