// Sum of integers: by a tree in LDS, by shuffles within a wave, and over the workgroups by a second launch.
// Argument: how many.
#include "check.h"

constexpr unsigned kThreads = 256;

__global__ void reduce_lds(const int* values, int* sums, unsigned count) {
  __shared__ int part[kThreads];
  int own = 0;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) own += values[i];
  part[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void reduce_shuffle(const int* values, int* sum, unsigned count) {
  int own = 0;
  for (unsigned i = threadIdx.x; i < count; i += warpSize) own += values[i];
  for (unsigned distance = warpSize / 2; distance > 0; distance /= 2) own += __shfl_down(own, distance);
  if (threadIdx.x == 0) *sum = own;
}

int main(int count, char** words) {
  const unsigned size = size_argument(count, words, 200000);
  constexpr unsigned kBlocks = 32;
  std::vector<int> given(size);
  int expected = 0;
  for (unsigned i = 0; i < size; ++i) expected += given[i] = static_cast<int>(i % 97) - 40;
  const int* values = on_device(given);
  int* sums = on_device(std::vector<int>(kBlocks));
  int* sum = on_device(std::vector<int>(1));
  reduce_lds<<<kBlocks, kThreads>>>(values, sums, size);
  reduce_shuffle<<<1, 64>>>(sums, sum, kBlocks);
  const int found = on_host(sum, 1)[0];
  std::printf("reduction wrong %d of 1\n", found != expected);
  return found != expected;
}
