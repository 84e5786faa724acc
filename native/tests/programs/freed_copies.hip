// `freed_copies [MIB]`: ordinary HIP that copies so many MiB from memory of the host, which is freed before the launch, and
// also from an array of which one page in the middle is given back. Exit: 0 right, 1 wrong, 70 a call failed.
#include <hip/hip_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

constexpr size_t kPageBytes = 4096;

// An array of sevens where the system puts nothing by itself: memory that it chose would be given out again after it was
// freed, to the runtime's own threads among others, and then it would be readable in some runs and not in others.
static int* array_at(uintptr_t address, size_t bytes) {
  void* mapped = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) {
    std::perror("no memory at the address that the test wants");
    return nullptr;
  }
  int* values = static_cast<int*>(mapped);
  std::fill_n(values, bytes / sizeof(int), 7);
  return values;
}

int main(int count, char** words) {
  const size_t bytes = (count > 1 ? std::strtoul(words[1], nullptr, 10) : 8) << 20;
  constexpr unsigned kItems = 1000;
  int* values = nullptr;
  int* others = nullptr;
  CHECK(hipMalloc(&values, bytes));
  CHECK(hipMalloc(&others, bytes));
  int* whole = array_at(0x300000000000, bytes);
  int* torn = array_at(0x310000000000, bytes);
  if (whole == nullptr || torn == nullptr) return 70;
  CHECK(hipMemcpy(values, whole, bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(others, torn, bytes, hipMemcpyHostToDevice));
  munmap(whole, bytes);
  munmap(torn + bytes / 2 / sizeof(int), kPageBytes);
  hipLaunchKernelGGL(add_in_place, dim3((kItems + 63) / 64), dim3(64), 0, nullptr, values, kItems, 5);
  CHECK(hipDeviceSynchronize());
  std::vector<int> host(kItems);
  CHECK(hipMemcpy(host.data(), values, kItems * sizeof(int), hipMemcpyDeviceToHost));
  const bool right = host.front() == 12 && host.back() == 12;
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}
