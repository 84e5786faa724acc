// `capture_scenarios SCENARIO CODE_OBJECT`: programs of plain HSA of which one launch is captured. Each writes
// down what it knows of its memory before and after that launch (known.h), runs to its end whether it is
// captured or not, and checks its own result. Exit: 0 right, 1 wrong, 70 a call of the runtime failed.
#include <fcntl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "hsa_session.h"
#include "known.h"
#include "linked_list.h"

namespace {

constexpr uint32_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr size_t kPage = 4096;

struct AddInPlace {
  int* values;
  uint32_t count;
  int amount;
};

struct AddArrays {
  const int *left, *right;
  int* sum;
  uint32_t count;
};

struct Accumulate {
  const int* values;
  uint32_t count;
  int* sum;
};

struct FollowList {
  Node* first;
  int amount;
};

template <typename T>
T* given(HsaSession& session, const T& arguments) {
  T* place = session.host_array<T>(1);
  *place = arguments;
  return place;
}

void put(HsaSession& session, void* device, const void* bytes, size_t count, size_t number = 0) {
  char* host = session.host_array<char>(count);
  std::memcpy(host, bytes, count);
  HsaSession::copy(device, session.gpu(number).agent, host, session.cpu(), count);
  HsaSession::free(host);
}

std::vector<int> numbers(int first) {
  std::vector<int> values(kCount);
  std::iota(values.begin(), values.end(), first);
  return values;
}

bool holds(HsaSession& session, const void* device, const std::vector<int>& expected, size_t number = 0) {
  int* host = session.host_array<int>(expected.size());
  const size_t bytes = expected.size() * sizeof(int);
  HsaSession::copy(host, session.cpu(), device, session.gpu(number).agent, bytes);
  const bool same = std::equal(expected.begin(), expected.end(), host);
  HsaSession::free(host);
  return same;
}

// Three launches that add 5; the second is the one to take. Another kernel of the same object goes before.
int in_place(HsaSession& session, const std::string& code) {
  int* values = session.device_array<int>(kCount);
  int* sum = session.device_array<int>(1);
  put(session, values, numbers(1).data(), kBytes);
  const int start = 40;
  put(session, sum, &start, sizeof(start));
  known("before", values, numbers(6).data(), kBytes);
  known("after", values, numbers(11).data(), kBytes);
  const int total = start + kCount * (kCount + 1) / 2;
  known("before", sum, &total, sizeof(total));
  known("after", sum, &total, sizeof(total));
  const Kernels kernels(code, session.gpu().agent);
  Queue queue(session.gpu().agent);
  queue.submit(kernels.packet("accumulate", 1, given(session, Accumulate{values, kCount, sum})));
  auto* add = given(session, AddInPlace{values, kCount, 5});
  for (int i = 0; i < 3; ++i) queue.submit(kernels.packet("add_in_place", kCount, add));
  queue.wait();
  const bool right = holds(session, values, numbers(16)) && holds(session, sum, {total});
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

// A kernel that adds to a sum what is there; slow launches of another one are in flight on its own queue and on
// two others. All of them are over before the memory is taken.
int drain(HsaSession& session, const std::string& code) {
  const hsa_agent_t gpu = session.gpu().agent;
  int* value = session.device_array<int>(1);
  int* elsewhere = session.device_array<int>(2);
  int* sum = session.device_array<int>(1);
  const int start[] = {100, 1000, 2000};
  put(session, value, &start[0], sizeof(int));
  put(session, elsewhere, &start[1], 2 * sizeof(int));
  put(session, sum, &start[0], sizeof(int));
  const int drained[] = {112, 1008, 2008, 212};
  known("before", value, &drained[0], sizeof(int));
  known("before", elsewhere, &drained[1], 2 * sizeof(int));
  known("before", sum, &start[0], sizeof(int));
  known("after", sum, &drained[3], sizeof(int));
  const Kernels kernels(code, gpu);
  Queue own(gpu), second(gpu), third(gpu);
  const auto add = [&](int* place) {
    return kernels.packet("add_in_place", 1, given(session, AddInPlace{place, 1, 4}));
  };
  for (int i = 0; i < 2; ++i) {
    second.submit(add(elsewhere));
    third.submit(add(elsewhere + 1));
  }
  for (int i = 0; i < 3; ++i) own.submit(add(value));
  own.submit(kernels.packet("accumulate", 1, given(session, Accumulate{value, 1, sum})));
  own.wait();
  second.wait();
  third.wait();
  const bool right = holds(session, value, {112}) && holds(session, elsewhere, {1008, 2008}) &&
                     holds(session, sum, {212});
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

// Nodes in the middle of memory of every kind, and how the program itself reaches them.
struct Place {
  Node* device;
  Node* host;  // nullptr: by a copy
};

// Given back at the end: ROCr 6.4.3 crashes when it is shut down with it.
class VirtualMemory {
 public:
  explicit VirtualMemory(HsaSession& session) {
    void* reserved = nullptr;
    CHECK(hsa_amd_vmem_address_reserve(&reserved, 4 * kMapped, 0, 0));
    reserved_ = static_cast<char*>(reserved);
    CHECK(hsa_amd_vmem_handle_create(session.gpu().pool, kMapped, MEMORY_TYPE_NONE, 0, &handle_));
    CHECK(hsa_amd_vmem_map(second(), kMapped, 0, handle_, 0));
    const hsa_amd_memory_access_desc_t access{HSA_ACCESS_PERMISSION_RW, session.gpu().agent};
    CHECK(hsa_amd_vmem_set_access(second(), kMapped, &access, 1));
  }
  ~VirtualMemory() {
    CHECK(hsa_amd_vmem_unmap(second(), kMapped));
    CHECK(hsa_amd_vmem_handle_release(handle_));
    CHECK(hsa_amd_vmem_address_free(reserved_, 4 * kMapped));
  }
  // The last of what is mapped; nothing is before and behind it.
  Node* node() const { return reinterpret_cast<Node*>(second() + kMapped - sizeof(Node)); }

 private:
  static constexpr size_t kMapped = 2ULL << 20;
  char* second() const { return reserved_ + kMapped; }

  char* reserved_ = nullptr;
  hsa_amd_vmem_alloc_handle_t handle_{};
};

Node* locked_memory(HsaSession& session, std::vector<Node>& own) {
  hsa_agent_t gpu = session.gpu().agent;
  void* locked = nullptr;
  CHECK(hsa_amd_memory_lock(own.data(), own.size() * sizeof(Node), &gpu, 1, &locked));
  return static_cast<Node*>(locked);
}

Node* shared_virtual_memory(HsaSession& session) {
  auto* shared = static_cast<Node*>(std::aligned_alloc(kPage, kPage));
  hsa_amd_svm_attribute_pair_t access{HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, session.gpu().agent.handle};
  CHECK(hsa_amd_svm_attributes_set(shared, kPage, &access, 1));
  return shared;
}

// The variable of the module, in memory that the loader took.
Node* module_variable(const Kernels& kernels) {
  uint64_t address = 0;
  CHECK(hsa_executable_symbol_get_info(kernels.symbol("node_of_module"),
                                       HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address));
  return reinterpret_cast<Node*>(address);
}

// One launch goes along a list through memory of every kind. It is the second of three that one doorbell
// starts, has LDS that only the launch asks for, and its code object came from a file.
int every_kind(HsaSession& session, const std::string& code) {
  const int file = open(code.c_str(), O_RDONLY);
  const Kernels kernels(file, session.gpu().agent);
  const VirtualMemory mapped(session);
  std::vector<Node> own(2);
  void* region = nullptr;
  CHECK(hsa_memory_allocate(host_region(session), kPage, &region));
  Node* pool = session.device_array<Node>(3) + 1;
  Node* host = session.host_array<Node>(2) + 1;
  Node* shared = shared_virtual_memory(session);
  const std::vector<Place> places = {{pool, nullptr},
                                     {mapped.node(), nullptr},
                                     {host, host},
                                     {static_cast<Node*>(region), static_cast<Node*>(region)},
                                     {locked_memory(session, own), own.data()},
                                     {shared, shared},
                                     {module_variable(kernels), nullptr}};
  for (size_t i = 0; i < places.size(); ++i) {
    const Node node{i + 1 < places.size() ? places[i + 1].device : nullptr, static_cast<int>(10 * i), 0};
    if (places[i].host != nullptr) {
      *places[i].host = node;
    } else {
      put(session, places[i].device, &node, sizeof(node));
    }
    const Node before{node.next, node.value + 1, 1};  // the first of the three adds 1, this one 100
    const Node after{node.next, node.value + 101, 2};
    known("before", places[i].device, &before, sizeof(before));
    known("after", places[i].device, &after, sizeof(after));
  }
  Queue queue(session.gpu().agent);
  std::vector<hsa_kernel_dispatch_packet_t> batch;
  for (const int amount : {1, 100, 10000}) {
    batch.push_back(kernels.packet("follow_list", 64, given(session, FollowList{pool, amount})));
    batch.back().group_segment_size += 1024;
  }
  queue.submit(batch);
  queue.wait();
  int wrong = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].host != nullptr) wrong += places[i].host->value != static_cast<int>(10 * i) + 10101;
  }
  std::printf("right %d\n", wrong == 0);
  return wrong == 0 ? 0 : 1;
}

// The second GPU adds an array of the first one to its own.
int two_gpus(HsaSession& session, const std::string& code) {
  int* first = session.device_array<int>(kCount, 0);
  int* second = session.device_array<int>(kCount, 1);
  const hsa_agent_t agents[] = {session.gpu(0).agent, session.gpu(1).agent};
  CHECK(hsa_amd_agents_allow_access(2, agents, nullptr, first));
  put(session, first, numbers(1).data(), kBytes, 0);
  put(session, second, numbers(0).data(), kBytes, 1);
  std::vector<int> sums(kCount);
  for (uint32_t i = 0; i < kCount; ++i) sums[i] = static_cast<int>(2 * i + 1);
  known("before", first, numbers(1).data(), kBytes);
  known("before", second, numbers(0).data(), kBytes);
  known("after", second, sums.data(), kBytes);
  const Kernels kernels(code, session.gpu(1).agent);
  Queue queue(session.gpu(1).agent);
  queue.submit(kernels.packet("add_arrays", kCount, given(session, AddArrays{first, second, second, kCount})));
  queue.wait();
  const bool right = holds(session, second, sums, 1);
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

// Memory of the parent, to which a kernel of the child adds.
int parent(pid_t child, int to_child) {
  HsaSession session;
  int* device = session.device_array<int>(kCount);
  put(session, device, numbers(1).data(), kBytes);
  hsa_amd_ipc_memory_t shared{};
  CHECK(hsa_amd_ipc_memory_create(device, kPage, &shared));
  if (write(to_child, &shared, sizeof(shared)) != sizeof(shared)) return 1;
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  const bool right = holds(session, device, numbers(6));
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

int child(int from_parent, const std::string& code) {
  HsaSession session;
  const hsa_agent_t gpu = session.gpu().agent;
  hsa_amd_ipc_memory_t shared{};
  if (read(from_parent, &shared, sizeof(shared)) != sizeof(shared)) return 1;
  void* mapped = nullptr;
  CHECK(hsa_amd_ipc_memory_attach(&shared, kPage, 1, &gpu, &mapped));
  known("before", mapped, numbers(1).data(), kBytes);
  known("after", mapped, numbers(6).data(), kBytes);
  {
    const Kernels kernels(code, gpu);
    Queue queue(gpu);
    auto* add = given(session, AddInPlace{static_cast<int*>(mapped), kCount, 5});
    queue.submit(kernels.packet("add_in_place", kCount, add));
    queue.wait();
  }
  CHECK(hsa_amd_ipc_memory_detach(mapped));
  return 0;
}

int between_processes(const std::string& code) {
  int ends[2] = {};
  if (pipe(ends) != 0) return 1;
  const pid_t forked = fork();
  close(ends[forked == 0 ? 1 : 0]);  // so that the child notices when the parent fails
  return forked == 0 ? child(ends[0], code) : parent(forked, ends[1]);
}

// Gigabytes of which one page is used.
int sparse(HsaSession& session, const std::string& code, size_t bytes) {
  char* large = session.device_array<char>(bytes);
  char* place = large + bytes - kBytes;
  put(session, place, numbers(1).data(), kBytes);
  known_part("before", large, bytes, bytes - kBytes, numbers(1).data(), kBytes);
  known_part("after", large, bytes, bytes - kBytes, numbers(6).data(), kBytes);
  const Kernels kernels(code, session.gpu().agent);
  Queue queue(session.gpu().agent);
  auto* add = given(session, AddInPlace{reinterpret_cast<int*>(place), kCount, 5});
  queue.submit(kernels.packet("add_in_place", kCount, add));
  queue.wait();
  const bool right = holds(session, place, numbers(6));
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

int* written_meanwhile = nullptr;

// The program writes to host memory while it is captured; the kernel adds to other memory.
int host_writer(HsaSession& session, const std::string& code) {
  int* values = session.device_array<int>(kCount);
  put(session, values, numbers(1).data(), kBytes);
  written_meanwhile = session.host_array<int>(kCount);
  known("before", values, numbers(1).data(), kBytes);
  known("after", values, numbers(6).data(), kBytes);
  const Kernels kernels(code, session.gpu().agent);
  Queue queue(session.gpu().agent);
  queue.submit(kernels.packet("add_in_place", kCount, given(session, AddInPlace{values, kCount, 5})));
  queue.wait();
  written_meanwhile = nullptr;
  const bool right = holds(session, values, numbers(6));
  std::printf("right %d\n", right);
  return right ? 0 : 1;
}

}  // namespace

// Of the C library, which the capture calls for each file that it wrote: a writer that runs in between each time, as no
// thread does for sure.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (written_meanwhile != nullptr) ++*written_meanwhile;
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

// A disk on which $FULL_AFTER more bytes of memory can be written.
extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) noexcept {
  static const char* const full = std::getenv("FULL_AFTER");
  static long left = full == nullptr ? 0 : std::atol(full);
  char name[4096] = {};
  if (full != nullptr && readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), name, sizeof(name) - 1) > 0 &&
      std::strstr(name, "/memory/region") != nullptr && (left -= static_cast<long>(count)) < 0) {
    errno = ENOSPC;
    return -1;
  }
  const iovec part{const_cast<void*>(bytes), count};
  return pwritev(file, &part, 1, offset);
}

int main(int, char** arguments) {
  using Scenario = std::function<int(HsaSession&, const std::string&)>;
  const std::map<std::string, Scenario> scenarios = {
      {"in_place", in_place},
      {"drain", drain},
      {"every_kind", every_kind},
      {"two_gpus", two_gpus},
      {"host_writer", host_writer},
      {"sparse_2", [](auto& session, const auto& code) { return sparse(session, code, 2ULL << 30); }},
      {"sparse_11", [](auto& session, const auto& code) { return sparse(session, code, 11ULL << 30); }},
  };
  const std::string scenario = arguments[1];
  if (scenario == "between_processes") return between_processes(arguments[2]);
  HsaSession session;
  return scenarios.at(scenario)(session, arguments[2]);
}
