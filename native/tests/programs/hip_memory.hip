// `hip_memory`: a kernel adds to memory of every kind that HIP gives, and the program checks each.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const hipError_t status_ = (call);                                                                \
    if (status_ != hipSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status_)); \
      std::exit(70);                                                                                  \
    }                                                                                                 \
  } while (false)

extern "C" __global__ void add_in_place(int* values, unsigned count, int amount) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) values[id] += amount;
}

namespace {

constexpr unsigned kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);
int wrong = 0;

void add(int* device, hipStream_t stream = nullptr) {
  add_in_place<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount, 5);
  CHECK(hipGetLastError());
}

void expect(const char* kind, const int* values, int value) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (values[i] == value) continue;
    std::printf("%s: %d instead of %d at %u\n", kind, values[i], value, i);
    ++wrong;
    return;
  }
}

void fill(int* values, int value) {
  for (unsigned i = 0; i < kCount; ++i) values[i] = value;
}

void pinned() {
  int *host = nullptr, *device = nullptr;
  CHECK(hipHostMalloc(&host, kBytes));
  fill(host, 1);
  CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&device), host, 0));
  add(device);
  CHECK(hipDeviceSynchronize());
  expect("pinned", host, 6);
  CHECK(hipHostFree(host));
}

void registered() {
  std::vector<int> host(kCount, 2);
  int* device = nullptr;
  CHECK(hipHostRegister(host.data(), kBytes, hipHostRegisterDefault));
  CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&device), host.data(), 0));
  add(device);
  CHECK(hipDeviceSynchronize());
  expect("registered", host.data(), 7);
  CHECK(hipHostUnregister(host.data()));
}

void managed() {
  int* values = nullptr;
  CHECK(hipMallocManaged(&values, kBytes));
  fill(values, 3);
  add(values);
  CHECK(hipDeviceSynchronize());
  expect("managed", values, 8);
  CHECK(hipFree(values));
}

// Rows that lie apart on the device, copied there and back as a rectangle.
void pitched() {
  constexpr size_t kRows = 10;
  constexpr size_t kRowBytes = kBytes / kRows;
  std::vector<int> host(kCount, 4), back(kCount, 0);
  int* device = nullptr;
  constexpr size_t kPitch = 512;  // hipMallocPitch needs images, which Debian's ROCr is built without
  CHECK(hipMalloc(&device, kPitch * kRows));
  CHECK(hipMemcpy2D(device, kPitch, host.data(), kRowBytes, kRowBytes, kRows, hipMemcpyHostToDevice));
  CHECK(hipMemcpy2D(back.data(), kRowBytes, device, kPitch, kRowBytes, kRows, hipMemcpyDeviceToHost));
  expect("pitched", back.data(), 4);
  CHECK(hipFree(device));
}

// A copy, a kernel and a copy back that were recorded and are launched twice.
void graph() {
  std::vector<int> host(kCount, 0);
  int* device = nullptr;
  CHECK(hipMalloc(&device, kBytes));
  CHECK(hipMemset(device, 0, kBytes));
  hipStream_t stream{};
  CHECK(hipStreamCreate(&stream));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  add(device, stream);
  CHECK(hipMemcpyAsync(host.data(), device, kBytes, hipMemcpyDeviceToHost, stream));
  hipGraph_t recorded{};
  hipGraphExec_t ready{};
  CHECK(hipStreamEndCapture(stream, &recorded));
  CHECK(hipGraphInstantiate(&ready, recorded, nullptr, nullptr, 0));
  for (int i = 0; i < 2; ++i) CHECK(hipGraphLaunch(ready, stream));
  CHECK(hipStreamSynchronize(stream));
  expect("graph", host.data(), 10);
  CHECK(hipGraphExecDestroy(ready));
  CHECK(hipGraphDestroy(recorded));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(device));
}

}  // namespace

int main() {
  pinned();
  registered();
  managed();
  pitched();
  graph();
  int* device = nullptr;
  CHECK(hipMalloc(&device, kBytes));
  std::printf("wrong %d at %p\n", wrong, static_cast<void*>(device));
  CHECK(hipFree(device));
  return wrong == 0 ? 0 : 1;
}
