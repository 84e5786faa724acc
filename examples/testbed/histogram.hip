// Histogram of bytes, in LDS first, then added in memory. Argument: how many bytes.
#include "check.h"

constexpr unsigned kBins = 256, kThreads = 256;

__global__ void histogram(const unsigned char* bytes, unsigned* bins, unsigned count) {
  __shared__ unsigned own[kBins];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) atomicAdd(&own[bytes[i]], 1U);
  __syncthreads();
  if (own[threadIdx.x] != 0) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main(int count, char** words) {
  const unsigned size = size_argument(count, words, 100000);
  std::vector<unsigned char> given(size);
  std::vector<unsigned> expected(kBins);
  for (unsigned i = 0; i < size; ++i) ++expected[given[i] = static_cast<unsigned char>(i * 2654435761U >> (i % 3 * 8))];
  unsigned* bins = on_device(std::vector<unsigned>(kBins));
  histogram<<<16, kThreads>>>(on_device(given), bins, size);
  const std::vector<unsigned> found = on_host(bins, kBins);
  unsigned wrong = 0;
  for (unsigned i = 0; i < kBins; ++i) wrong += found[i] != expected[i];
  std::printf("histogram wrong %u of %u\n", wrong, kBins);
  return wrong != 0;
}
