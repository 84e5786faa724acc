// Ordinary HIP: copies both ways, two streams, an event between them, a fill, and the check of the result.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    const hipError_t status_ = (call);                                                 \
    if (status_ != hipSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status_)); \
      return 70;                                                                       \
    }                                                                                  \
  } while (false)

extern "C" __global__ void add_arrays(const int* left, const int* right, int* sum, unsigned count) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) sum[id] = left[id] + right[id];
}

extern "C" __global__ void add_in_place(int* values, unsigned count, int amount) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) values[id] += amount;
}

int main() {
  constexpr unsigned kCount = 100000;
  constexpr unsigned kBlocks = (kCount + 255) / 256;
  std::vector<int> values(kCount);
  std::iota(values.begin(), values.end(), 1);
  int devices = 0;
  CHECK(hipGetDeviceCount(&devices));
  hipDeviceProp_t properties{};
  CHECK(hipGetDeviceProperties(&properties, 0));
  int *left = nullptr, *right = nullptr, *sum = nullptr;
  CHECK(hipMalloc(&left, kCount * sizeof(int)));
  CHECK(hipMalloc(&right, kCount * sizeof(int)));
  CHECK(hipMalloc(&sum, kCount * sizeof(int)));
  CHECK(hipMemcpy(left, values.data(), kCount * sizeof(int), hipMemcpyHostToDevice));
  CHECK(hipMemset(right, 1, kCount * sizeof(int)));
  hipStream_t first{}, second{};
  CHECK(hipStreamCreate(&first));
  CHECK(hipStreamCreate(&second));
  hipEvent_t added{};
  CHECK(hipEventCreate(&added));
  add_arrays<<<kBlocks, 256, 0, first>>>(left, right, sum, kCount);
  CHECK(hipEventRecord(added, first));
  CHECK(hipStreamWaitEvent(second, added, 0));
  for (int i = 0; i < 3; ++i) add_in_place<<<kBlocks, 256, 0, second>>>(sum, kCount, 5);
  CHECK(hipGetLastError());
  CHECK(hipMemcpyAsync(right, sum, kCount * sizeof(int), hipMemcpyDeviceToDevice, second));
  CHECK(hipStreamSynchronize(second));
  CHECK(hipMemcpy(values.data(), right, kCount * sizeof(int), hipMemcpyDeviceToHost));
  unsigned wrong = 0;
  for (unsigned i = 0; i < kCount; ++i) wrong += values[i] != static_cast<int>(i + 1 + 0x01010101 + 15);
  CHECK(hipEventDestroy(added));
  CHECK(hipStreamDestroy(first));
  CHECK(hipStreamDestroy(second));
  for (int* memory : {left, right, sum}) CHECK(hipFree(memory));
  std::printf("devices %d arch %s wrong %u\n", devices, properties.gcnArchName, wrong);
  return wrong == 0 ? 0 : 1;
}
