// What a kernel asks of the host while it runs, and what it tells it: printf, assert, malloc.
#include <hip/hip_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstring>

#define CHECK(call)                                                    \
  do {                                                                 \
    const hipError_t status_ = (call);                                 \
    if (status_ != hipSuccess) {                                       \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(status_)); \
      return 70;                                                       \
    }                                                                  \
  } while (false)

constexpr int kItems = 256, kWords = 3000;

__global__ void say(int number) {
  if (threadIdx.x < 3) printf("lane %d of %d: %s %.2f\n", static_cast<int>(threadIdx.x), number, "text", 0.25 * threadIdx.x);
}

__global__ void holds(unsigned below) { assert(threadIdx.x < below); }

// More than the heap has at first: the host maps memory while the kernel runs.
__global__ void allocate(int* sums) {
  const int id = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int* own = static_cast<int*>(malloc(kWords * sizeof(int)));
  sums[id] = -1;
  if (own == nullptr) return;
  for (int i = 0; i < kWords; ++i) own[i] = id + i;
  int sum = 0;
  for (int i = 0; i < kWords; ++i) sum += own[i];
  sums[id] = sum;
  free(own);
}
__global__ void make(int** made) { made[threadIdx.x] = new int(static_cast<int>(threadIdx.x)); }
__global__ void take(int** made, int* values) {
  values[threadIdx.x] = *made[threadIdx.x];
  delete made[threadIdx.x];
}

int heap() {
  int* sums = nullptr;
  int** made = nullptr;
  CHECK(hipMalloc(&sums, kItems * sizeof(int)));
  CHECK(hipMalloc(&made, 64 * sizeof(int*)));
  allocate<<<4, kItems / 4>>>(sums);
  int wrong = 0, back[kItems];
  CHECK(hipMemcpy(back, sums, sizeof(back), hipMemcpyDeviceToHost));
  for (int id = 0; id < kItems; ++id) wrong += back[id] != id * kWords + kWords * (kWords - 1) / 2;
  make<<<1, 64>>>(made);
  take<<<1, 64>>>(made, sums);
  CHECK(hipMemcpy(back, sums, 64 * sizeof(int), hipMemcpyDeviceToHost));
  for (int id = 0; id < 64; ++id) wrong += back[id] != id;
  std::printf("wrong %d\n", wrong);
  return 0;
}

int main(int, char** words) {
  if (std::strcmp(words[1], "heap") == 0) return heap();
  if (std::strcmp(words[1], "print") == 0) say<<<1, 64>>>(7);
  if (std::strcmp(words[1], "assert") == 0) holds<<<1, 64>>>(words[2][0] == 'y' ? 64 : 63);
  CHECK(hipDeviceSynchronize());
  return 0;
}
