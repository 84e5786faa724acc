// `hip_capture [vmm]`: ordinary HIP of which one launch is captured: `demo::walk<int>` along a list through memory
// of every kind that HIP gives, second launch of a graph, while other streams have work in flight. It writes down
// what it knows of its memory before and after (known.h). With `vmm` a node also lies in memory that is mapped
// piece by piece, for which older HIP has no functions over this driver.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "known.h"
#include "linked_list.h"

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const hipError_t status_ = (call);                                                                \
    if (status_ != hipSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status_)); \
      std::exit(70);                                                                                  \
    }                                                                                                 \
  } while (false)

namespace demo {

template <typename T>
__global__ void walk(Node* node, T amount) {
  extern __shared__ int scratch[];
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  for (; node != nullptr; node = node->next) {
    scratch[0] = amount;
    node->value += scratch[0];
    ++node->visits;
  }
}

}  // namespace demo

extern "C" __global__ void add_in_place(int* values, unsigned count, int amount) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) values[id] += amount;
}

__device__ Node node_of_module = {nullptr, 3, 0};

namespace {

constexpr unsigned kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr size_t kPage = 4096;
constexpr unsigned kDynamicLds = 512;
constexpr int kAmount = 100;

struct Place {
  Node* device;
  Node* host;  // nullptr: by a copy
};

Node* on_device() {
  void* memory = nullptr;
  CHECK(hipMalloc(&memory, kPage));
  return static_cast<Node*>(memory) + 3;
}

Place pinned() {
  void *host = nullptr, *device = nullptr;
  CHECK(hipHostMalloc(&host, kPage));
  CHECK(hipHostGetDevicePointer(&device, host, 0));
  return {static_cast<Node*>(device), static_cast<Node*>(host)};
}

Place registered(std::vector<Node>& own) {
  void* device = nullptr;
  CHECK(hipHostRegister(own.data(), own.size() * sizeof(Node), hipHostRegisterDefault));
  CHECK(hipHostGetDevicePointer(&device, own.data(), 0));
  return {static_cast<Node*>(device), own.data()};
}

Place managed() {
  void* memory = nullptr;
  CHECK(hipMallocManaged(&memory, kPage));
  return {static_cast<Node*>(memory), static_cast<Node*>(memory)};
}

Node* of_module() {
  void* address = nullptr;
  CHECK(hipGetSymbolAddress(&address, HIP_SYMBOL(node_of_module)));
  return static_cast<Node*>(address);
}

// Given back at the end: ROCr 6.4.3 crashes when it is shut down with it.
struct Mapped {
  char* reserved = nullptr;
  size_t granule = 0;
  hipMemGenericAllocationHandle_t handle{};

  Node* node() const { return reinterpret_cast<Node*>(reserved + granule) + 1; }
  void give_back() const {
    CHECK(hipMemUnmap(reserved + granule, granule));
    CHECK(hipMemRelease(handle));
    CHECK(hipMemAddressFree(reserved, 2 * granule));
  }
};

Mapped mapped_by_pieces() {
  hipMemAllocationProp wanted{};
  wanted.type = hipMemAllocationTypePinned;
  wanted.location.type = hipMemLocationTypeDevice;
  Mapped made;
  CHECK(hipMemGetAllocationGranularity(&made.granule, &wanted, hipMemAllocationGranularityRecommended));
  void* reserved = nullptr;
  CHECK(hipMemAddressReserve(&reserved, 2 * made.granule, 0, nullptr, 0));
  made.reserved = static_cast<char*>(reserved);
  CHECK(hipMemCreate(&made.handle, made.granule, &wanted, 0));
  CHECK(hipMemMap(made.reserved + made.granule, made.granule, 0, made.handle, 0));
  hipMemAccessDesc access{};
  access.location = wanted.location;
  access.flags = hipMemAccessFlagsProtReadWrite;
  CHECK(hipMemSetAccess(made.reserved + made.granule, made.granule, &access, 1));
  return made;
}

// Before and after the second of the two launches.
void link(const std::vector<Place>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    const Node node{i + 1 < places.size() ? places[i + 1].device : nullptr, static_cast<int>(i), 0};
    if (places[i].host != nullptr) {
      *places[i].host = node;
    } else {
      CHECK(hipMemcpy(places[i].device, &node, sizeof(node), hipMemcpyHostToDevice));
    }
    const Node before{node.next, node.value + kAmount, 1};
    const Node after{node.next, node.value + 2 * kAmount, 2};
    known("before", places[i].device, &before, sizeof(before));
    known("after", places[i].device, &after, sizeof(after));
  }
}

hipGraphExec_t recorded(hipStream_t stream, Node* first) {
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  demo::walk<int><<<1, 64, kDynamicLds, stream>>>(first, kAmount);
  hipGraph_t graph{};
  hipGraphExec_t ready{};
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  return ready;
}

}  // namespace

int main(int count, char** words) {
  std::vector<Node> own(kPage / sizeof(Node));
  std::vector<Place> places = {{on_device(), nullptr}, pinned(), registered(own), managed(),
                               {of_module(), nullptr}};
  Mapped mapped;
  if (count > 1 && std::strcmp(words[1], "vmm") == 0) {
    mapped = mapped_by_pieces();
    places.push_back({mapped.node(), nullptr});
  }
  link(places);
  hipStream_t main_stream{}, other{};
  CHECK(hipStreamCreate(&main_stream));
  CHECK(hipStreamCreate(&other));
  int* values = nullptr;
  CHECK(hipMalloc(&values, kBytes));
  CHECK(hipMemset(values, 0, kBytes));
  CHECK(hipDeviceSynchronize());
  const std::vector<int> added(kCount, 15);
  known("before", values, added.data(), kBytes);
  known("after", values, added.data(), kBytes);
  const hipGraphExec_t graph = recorded(main_stream, places[0].device);
  CHECK(hipGraphLaunch(graph, main_stream));
  for (int i = 0; i < 3; ++i) add_in_place<<<4, 256, 0, other>>>(values, kCount, 5);
  CHECK(hipGraphLaunch(graph, main_stream));
  CHECK(hipDeviceSynchronize());
  int wrong = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    Node node{};
    CHECK(hipMemcpy(&node, places[i].device, sizeof(node), hipMemcpyDefault));
    wrong += node.value != static_cast<int>(i) + 2 * kAmount;
  }
  if (mapped.reserved != nullptr) mapped.give_back();
  std::printf("right %d\n", wrong == 0);
  return wrong == 0 ? 0 : 1;
}
