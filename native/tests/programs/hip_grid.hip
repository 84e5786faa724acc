// A cooperative launch: all workgroups meet, several times.
#include <hip/hip_runtime.h>

#include <hip/hip_cooperative_groups.h>

#include <cstdio>

#define CHECK(call)                                                    \
  do {                                                                 \
    const hipError_t status_ = (call);                                 \
    if (status_ != hipSuccess) {                                       \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(status_)); \
      return 70;                                                       \
    }                                                                  \
  } while (false)

__global__ void meet(int* places, int* sums) {
  const auto grid = cooperative_groups::this_grid();
  const int id = static_cast<int>(grid.thread_rank()), count = static_cast<int>(grid.size());
  for (int round = 0; round < 3; ++round) {
    places[id] = id + round;
    grid.sync();
    sums[id] = places[(id + 64) % count] + places[count - 1 - id];
    grid.sync();
  }
}

int main() {
  constexpr int kCount = 1024;
  int *places = nullptr, *sums = nullptr;
  CHECK(hipMalloc(&places, kCount * sizeof(int)));
  CHECK(hipMalloc(&sums, kCount * sizeof(int)));
  void* arguments[] = {&places, &sums};
  CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(meet), dim3(8), dim3(128), arguments, 0, nullptr));
  static int back[kCount];
  CHECK(hipMemcpy(back, sums, sizeof(back), hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int id = 0; id < kCount; ++id) wrong += back[id] != (id + 64) % kCount + kCount - 1 - id + 4;
  std::printf("wrong %d\n", wrong);
  return 0;
}
