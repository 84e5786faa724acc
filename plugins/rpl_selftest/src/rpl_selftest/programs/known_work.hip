// Kernels whose work is known by arithmetic, timed by events: what `rpl selftest` records and replays.
//
//   known_work MEBIBYTES ITERATIONS REPEATS TIMES    each kernel REPEATS times; its times go to the file TIMES
//   known_work chain ITERATIONS LAUNCHES            fma_long alone, LAUNCHES times
//
// Results are checked on the host. Exit code 1: something was wrong; 2: not called like this; 3: no GPU.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const hipError_t error = (call);                                                         \
    if (error != hipSuccess) {                                                               \
      std::fprintf(stderr, "known_work: %s: %s\n", #call, hipGetErrorString(error));         \
      std::exit(3);                                                                          \
    }                                                                                        \
  } while (0)

constexpr unsigned kCopyBlock = 256, kChainBlock = 64, kChainBlocks = 4, kTreeBlock = 256, kTreeBlocks = 64;
constexpr double kFactor = 0.5, kSummand = 1.0;

// Each work-item moves 16 bytes.
extern "C" __global__ void stream_copy(const double2* from, double2* to) {
  const unsigned long i = blockIdx.x * static_cast<unsigned long>(blockDim.x) + threadIdx.x;
  to[i] = from[i];
}

// Every step needs the one before, so that time is latency: the same on each GPU of a kind and clock. In double,
// since two products in float may become one packed instruction, which counts once.
__device__ inline void chain(double* out, double factor, double summand, unsigned iterations) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double value = i;
#pragma unroll 1
  for (unsigned step = 0; step < iterations; ++step) {
    value = fma(value, factor, summand);
  }
  out[i] = value;
}

extern "C" __global__ void fma_short(double* out, double factor, double summand, unsigned iterations) {
  chain(out, factor, summand, iterations);
}

extern "C" __global__ void fma_long(double* out, double factor, double summand, unsigned iterations) {
  chain(out, factor, summand, iterations);
}

// A sum of 256 numbers in LDS with barriers.
extern "C" __global__ void lds_tree(const float* in, float* out) {
  __shared__ float sums[kTreeBlock];
  const unsigned lane = threadIdx.x;
  sums[lane] = in[blockIdx.x * blockDim.x + lane];
  __syncthreads();
  for (unsigned half = kTreeBlock / 2; half > 0; half /= 2) {
    if (lane < half) sums[lane] += sums[lane + half];
    __syncthreads();
  }
  if (lane == 0) out[blockIdx.x] = sums[0];
}

template <typename Launch>
double timed_ns(const Launch& launch) {
  hipEvent_t begin, end;
  CHECK(hipEventCreate(&begin));
  CHECK(hipEventCreate(&end));
  CHECK(hipEventRecord(begin, nullptr));
  launch();
  CHECK(hipGetLastError());
  CHECK(hipEventRecord(end, nullptr));
  CHECK(hipEventSynchronize(end));
  float milliseconds = 0;
  CHECK(hipEventElapsedTime(&milliseconds, begin, end));
  CHECK(hipEventDestroy(begin));
  CHECK(hipEventDestroy(end));
  return milliseconds * 1e6;
}

static double chain_on_host(unsigned start, unsigned iterations) {
  double value = start;
  for (unsigned step = 0; step < iterations; ++step) {
    const double next = std::fma(value, kFactor, kSummand);
    if (next == value) break;
    value = next;
  }
  return value;
}

// Nothing but fma_long: an application that its kernel is all of.
static int chain_alone(unsigned iterations, unsigned launches) {
  double* out = nullptr;
  CHECK(hipMalloc(&out, kChainBlock * kChainBlocks * sizeof(double)));
  for (; launches > 0; --launches) fma_long<<<kChainBlocks, kChainBlock>>>(out, kFactor, kSummand, iterations);
  CHECK(hipGetLastError());
  CHECK(hipDeviceSynchronize());
  CHECK(hipFree(out));
  return 0;
}

int main(int count, char** words) {
  if (count == 4 && std::strcmp(words[1], "chain") == 0) {
    return chain_alone(std::strtoul(words[2], nullptr, 10), std::strtoul(words[3], nullptr, 10));
  }
  if (count != 5) {
    std::fprintf(stderr, "known_work MEBIBYTES ITERATIONS REPEATS TIMES | chain ITERATIONS LAUNCHES\n");
    return 2;
  }
  const unsigned long bytes = std::strtoul(words[1], nullptr, 10) << 20;
  const unsigned iterations = std::strtoul(words[2], nullptr, 10), repeats = std::strtoul(words[3], nullptr, 10);
  const unsigned chains = kChainBlock * kChainBlocks, leaves = kTreeBlock * kTreeBlocks;
  std::vector<unsigned char> content(bytes), copied(bytes);
  for (unsigned long i = 0; i < bytes; ++i) content[i] = static_cast<unsigned char>(i * 31 + (i >> 8));
  std::vector<float> numbers(leaves), sums(kTreeBlocks);
  for (unsigned i = 0; i < leaves; ++i) numbers[i] = static_cast<float>(i % 7);
  std::vector<double> ends(chains);
  double2 *from = nullptr, *to = nullptr;
  double* out = nullptr;
  float *in = nullptr, *tree = nullptr;
  CHECK(hipMalloc(&from, bytes));
  CHECK(hipMalloc(&to, bytes));
  CHECK(hipMalloc(&out, chains * sizeof(double)));
  CHECK(hipMalloc(&in, leaves * sizeof(float)));
  CHECK(hipMalloc(&tree, kTreeBlocks * sizeof(float)));
  CHECK(hipMemcpy(from, content.data(), bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(in, numbers.data(), leaves * sizeof(float), hipMemcpyHostToDevice));
  std::FILE* times = std::fopen(words[4], "w");
  if (times == nullptr) {
    std::fprintf(stderr, "known_work: %s can't be written\n", words[4]);
    return 2;
  }
  for (unsigned turn = 0; turn < repeats; ++turn) {
    const double copy = timed_ns([&] {
      stream_copy<<<bytes / (sizeof(double2) * kCopyBlock), kCopyBlock>>>(from, to);
    });
    const double brief = timed_ns([&] {
      fma_short<<<kChainBlocks, kChainBlock>>>(out, kFactor, kSummand, iterations / 2);
    });
    const double longer = timed_ns([&] {
      fma_long<<<kChainBlocks, kChainBlock>>>(out, kFactor, kSummand, iterations);
    });
    const double reduced = timed_ns([&] { lds_tree<<<kTreeBlocks, kTreeBlock>>>(in, tree); });
    std::fprintf(times, "stream_copy %.0f\nfma_short %.0f\nfma_long %.0f\nlds_tree %.0f\n", copy, brief, longer,
                 reduced);
  }
  std::fclose(times);
  CHECK(hipMemcpy(copied.data(), to, bytes, hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(ends.data(), out, chains * sizeof(double), hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(sums.data(), tree, kTreeBlocks * sizeof(float), hipMemcpyDeviceToHost));
  unsigned long wrong = 0;
  for (unsigned long i = 0; i < bytes; ++i) wrong += copied[i] != content[i];
  for (unsigned i = 0; i < chains; ++i) wrong += ends[i] != chain_on_host(i, iterations);
  for (unsigned block = 0; block < kTreeBlocks; ++block) {
    float expected = 0;  // whole numbers below 2^24: any order gives the same
    for (unsigned i = 0; i < kTreeBlock; ++i) expected += numbers[block * kTreeBlock + i];
    wrong += sums[block] != expected;
  }
  std::printf("known_work: wrong %lu of %lu\n", wrong, bytes + chains + kTreeBlocks);
  CHECK(hipFree(from));
  CHECK(hipFree(to));
  CHECK(hipFree(out));
  CHECK(hipFree(in));
  CHECK(hipFree(tree));
  return wrong == 0 ? 0 : 1;
}
