// `freed_copies [MIB]`: ordinary HIP that copies so many MiB from memory of the host, which is freed before the launch, and
// also from an array of which one page in the middle is given back. Exit: 0 right, 1 wrong, 70 a call failed.
#include <hip/hip_runtime.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    const hipError_t status_ = (call);                                                 \
    if (status_ != hipSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status_)); \
      return 70;                                                                       \
    }                                                                                  \
  } while (false)

extern "C" __global__ void add_in_place(int* values, unsigned count, int amount) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) values[id] += amount;
}

int main(int count, char** words) {
  const size_t bytes = (count > 1 ? std::strtoul(words[1], nullptr, 10) : 8) << 20;
  constexpr unsigned kItems = 1000;
  int* values = nullptr;
  int* others = nullptr;
  CHECK(hipMalloc(&values, bytes));
  CHECK(hipMalloc(&others, bytes));
  {
    std::vector<int> host(bytes / sizeof(int), 7);
    CHECK(hipMemcpy(values, host.data(), bytes, hipMemcpyHostToDevice));
  }  // freed: so much is a mapping of its own, which goes back to the system
  auto* mapped = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mapped[0] = 1;
  CHECK(hipMemcpy(others, mapped, bytes, hipMemcpyHostToDevice));
  constexpr size_t kPage = 4096;
  munmap(mapped + bytes / 2 / kPage * kPage, kPage);
  hipLaunchKernelGGL(add_in_place, dim3((kItems + 63) / 64), dim3(64), 0, nullptr, values, kItems, 5);
  CHECK(hipDeviceSynchronize());
  std::vector<int> host(kItems);
  CHECK(hipMemcpy(host.data(), values, kItems * sizeof(int), hipMemcpyDeviceToHost));
  const bool right = host.front() == 12 && host.back() == 12;
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}
