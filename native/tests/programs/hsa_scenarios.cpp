// `hsa_scenarios SCENARIO CODE_OBJECT`: small programs of plain HSA, each of which checks what it gets and
// prints one line. Exit: 0 right, 1 wrong, 70 a call of the runtime failed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "hsa_session.h"

namespace {

constexpr uint32_t kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(int);

struct AddArrays {
  const int *left, *right;
  int* sum;
  uint32_t count;
};

struct AddInPlace {
  int* values;
  uint32_t count;
  int amount;
};

// Arrays over a DMA engine to a GPU, two kernels, and back.
int arithmetic(HsaSession& session, const std::string& code, size_t number) {
  const hsa_agent_t gpu = session.gpu(number).agent;
  char name[64] = {};
  CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_NAME, name));
  int* host = session.host_array<int>(kCount);
  int* left = session.device_array<int>(kCount, number);
  int* sum = session.device_array<int>(kCount, number);
  std::iota(host, host + kCount, 1);
  HsaSession::copy(left, gpu, host, session.cpu(), kBytes);
  auto* add = session.host_array<AddArrays>(1);
  *add = {left, left, sum, kCount};
  auto* in_place = session.host_array<AddInPlace>(1);
  *in_place = {sum, kCount, 5};
  uint64_t duration = 0;
  {
    const Kernels kernels(code, gpu);
    Queue queue(gpu);
    queue.submit(kernels.packet("add_arrays", kCount, add));
    for (int i = 0; i < 3; ++i) queue.submit(kernels.packet("add_in_place", kCount, in_place));
    queue.wait();
    duration = queue.last_duration(gpu);
  }
  HsaSession::copy(host, session.cpu(), sum, gpu, kBytes);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kCount; ++i) wrong += host[i] != static_cast<int>(2 * (i + 1) + 15);
  for (void* memory : std::vector<void*>{host, left, sum, add, in_place}) HsaSession::free(memory);
  std::printf("gpus %zu name %s wrong %u timed %d\n", session.gpus(), name, wrong, duration > 0);
  return wrong == 0 ? 0 : 1;
}

// A kernel is given an address that no GPU has mapped.
int unmapped(HsaSession& session, const std::string& code) {
  const hsa_agent_t gpu = session.gpu().agent;
  auto* arguments = session.host_array<AddInPlace>(1);
  *arguments = {reinterpret_cast<int*>(0x123456000), kCount, 1};
  const Kernels kernels(code, gpu);
  Queue queue(gpu);
  queue.submit(kernels.packet("add_in_place", kCount, arguments));
  queue.wait(5'000'000'000);
  std::printf("no fault\n");
  return 1;
}

// Three kernels that add 4 each to 100: what a copy sees while they are on their way, and after them.
int in_flight(HsaSession& session, const std::string& code) {
  const hsa_agent_t gpu = session.gpu().agent;
  int* host = session.host_array<int>(1);
  int* value = session.device_array<int>(1);
  *host = 100;
  HsaSession::copy(value, gpu, host, session.cpu(), sizeof(int));
  auto* arguments = session.host_array<AddInPlace>(1);
  *arguments = {value, 1, 4};
  const Kernels kernels(code, gpu);
  Queue queue(gpu);
  for (int i = 0; i < 3; ++i) queue.submit(kernels.packet("add_in_place", 1, arguments));
  HsaSession::copy(host, session.cpu(), value, gpu, sizeof(int));
  const int before = *host;
  queue.wait();
  HsaSession::copy(host, session.cpu(), value, gpu, sizeof(int));
  std::printf("before %d after %d\n", before, *host);
  return *host == 112 ? 0 : 1;
}

// Whether a kernel's end is told within half a second.
int ends(HsaSession& session, const std::string& code) {
  int* value = session.device_array<int>(1);
  auto* arguments = session.host_array<AddInPlace>(1);
  *arguments = {value, 1, 4};
  const Kernels kernels(code, session.gpu().agent);
  Queue queue(session.gpu().agent);
  queue.submit(kernels.packet("add_in_place", 1, arguments));
  const bool ended = queue.wait(500'000'000);
  std::printf("ended %d\n", ended);
  return ended ? 0 : 1;
}

// Memory whose address range, bytes and place in it are asked for one by one.
int virtual_memory(HsaSession& session, const std::string&) {
  constexpr size_t kLarge = 4ULL << 20;
  const hsa_agent_t gpu = session.gpu().agent;
  void* const asked = reinterpret_cast<void*>(0x5a0000000000);
  void* reserved = nullptr;
  const hsa_status_t status =
      hsa_amd_vmem_address_reserve(&reserved, kLarge, reinterpret_cast<uint64_t>(asked), 0);
  if (status != HSA_STATUS_SUCCESS) {
    std::printf("reserved no\n");
    return 1;
  }
  hsa_amd_vmem_alloc_handle_t handle{};
  CHECK(hsa_amd_vmem_handle_create(session.gpu().pool, kLarge, MEMORY_TYPE_NONE, 0, &handle));
  CHECK(hsa_amd_vmem_map(reserved, kLarge, 0, handle, 0));
  const hsa_amd_memory_access_desc_t access{HSA_ACCESS_PERMISSION_RW, gpu};
  CHECK(hsa_amd_vmem_set_access(reserved, kLarge, &access, 1));
  int* host = session.host_array<int>(kCount);
  std::iota(host, host + kCount, 1);
  HsaSession::copy(reserved, gpu, host, session.cpu(), kBytes);
  std::memset(host, 0, kBytes);
  HsaSession::copy(host, session.cpu(), reserved, gpu, kBytes);
  const bool same = host[kCount - 1] == static_cast<int>(kCount);
  CHECK(hsa_amd_vmem_unmap(reserved, kLarge));
  CHECK(hsa_amd_vmem_handle_release(handle));
  CHECK(hsa_amd_vmem_address_free(reserved, kLarge));
  std::printf("reserved %s same %d\n", reserved == asked ? "as asked" : "elsewhere", same);
  return same ? 0 : 1;
}

// Two gigabytes of which one page is used, copied whole.
int sparse(HsaSession& session, const std::string&) {
  constexpr size_t kLarge = 2ULL << 30;
  const hsa_agent_t gpu = session.gpu().agent;
  char* from = session.device_array<char>(kLarge);
  char* to = session.device_array<char>(kLarge);
  int* host = session.host_array<int>(kCount);
  std::iota(host, host + kCount, 1);
  HsaSession::copy(from + kLarge - kBytes, gpu, host, session.cpu(), kBytes);
  std::memset(host, 0, kBytes);
  HsaSession::copy(to, gpu, from, gpu, kLarge);
  HsaSession::copy(host, session.cpu(), to + kLarge - kBytes, gpu, kBytes);
  std::ifstream status("/proc/self/status");
  long peak_kb = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) peak_kb = std::atol(line.c_str() + 6);
  }
  std::printf("last %d peak_mb %ld\n", host[kCount - 1], peak_kb >> 10);
  return host[kCount - 1] == static_cast<int>(kCount) ? 0 : 1;
}

// Adds 5 to memory that a GPU reaches at `device` and the program at `host`.
uint32_t wrong_after_adding(HsaSession& session, const Kernels& kernels, int* device, const int* host) {
  auto* arguments = session.host_array<AddInPlace>(1);
  *arguments = {device, kCount, 5};
  Queue queue(session.gpu().agent);
  queue.submit(kernels.packet("add_in_place", kCount, arguments));
  queue.wait();
  HsaSession::free(arguments);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kCount; ++i) wrong += host[i] != static_cast<int>(i + 5);
  return wrong;
}

// Memory that isn't of a pool: of a region, of the program and locked, of the program and shared.
int other_memory(HsaSession& session, const std::string& code) {
  hsa_agent_t gpu = session.gpu().agent;
  const Kernels kernels(code, gpu);
  void* region = nullptr;
  CHECK(hsa_memory_allocate(host_region(session), kBytes, &region));
  auto* of_region = static_cast<int*>(region);
  std::iota(of_region, of_region + kCount, 0);
  const uint32_t wrong_region = wrong_after_adding(session, kernels, of_region, of_region);
  CHECK(hsa_memory_free(region));

  std::vector<int> own(kCount);
  std::iota(own.begin(), own.end(), 0);
  void* locked = nullptr;
  CHECK(hsa_amd_memory_lock(own.data(), kBytes, &gpu, 1, &locked));
  const uint32_t wrong_locked = wrong_after_adding(session, kernels, static_cast<int*>(locked), own.data());
  CHECK(hsa_amd_memory_unlock(own.data()));

  constexpr size_t kPages = 4096 * ((kBytes + 4095) / 4096);
  auto* shared = static_cast<int*>(std::aligned_alloc(4096, kPages));
  std::iota(shared, shared + kCount, 0);
  hsa_amd_svm_attribute_pair_t access{HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, gpu.handle};
  CHECK(hsa_amd_svm_attributes_set(shared, kPages, &access, 1));
  const uint32_t wrong_shared = wrong_after_adding(session, kernels, shared, shared);
  std::printf("wrong %u %u %u\n", wrong_region, wrong_locked, wrong_shared);
  return wrong_region + wrong_locked + wrong_shared == 0 ? 0 : 1;
}

// From one GPU to the other and back.
int peers(HsaSession& session, const std::string&) {
  int* first = session.device_array<int>(kCount, 0);
  int* second = session.device_array<int>(kCount, 1);
  int* host = session.host_array<int>(kCount);
  std::iota(host, host + kCount, 1);
  const hsa_agent_t agents[] = {session.gpu(0).agent, session.gpu(1).agent};
  CHECK(hsa_amd_agents_allow_access(2, agents, nullptr, first));
  CHECK(hsa_amd_agents_allow_access(2, agents, nullptr, second));
  HsaSession::copy(first, agents[0], host, session.cpu(), kBytes);
  std::memset(host, 0, kBytes);
  HsaSession::copy(second, agents[1], first, agents[0], kBytes);
  HsaSession::copy(host, session.cpu(), second, agents[1], kBytes);
  std::printf("last %d\n", host[kCount - 1]);
  return host[kCount - 1] == static_cast<int>(kCount) ? 0 : 1;
}

// Memory of the parent, which the child maps and reads.
int give_to(pid_t child, int to_child, HsaSession& session) {
  int* device = session.device_array<int>(kCount);
  int* host = session.host_array<int>(kCount);
  std::iota(host, host + kCount, 1);
  HsaSession::copy(device, session.gpu().agent, host, session.cpu(), kBytes);
  hsa_amd_ipc_memory_t shared{};
  CHECK(hsa_amd_ipc_memory_create(device, 4096, &shared));
  if (write(to_child, &shared, sizeof(shared)) != sizeof(shared)) return 1;
  int status = 1;
  return waitpid(child, &status, 0) == child ? status : 1;
}

int take_from(int parent, HsaSession& session) {
  const hsa_agent_t gpu = session.gpu().agent;
  hsa_amd_ipc_memory_t shared{};
  if (read(parent, &shared, sizeof(shared)) != sizeof(shared)) return 1;
  void* mapped = nullptr;
  CHECK(hsa_amd_ipc_memory_attach(&shared, 4096, 1, &gpu, &mapped));
  int* host = session.host_array<int>(kCount);
  HsaSession::copy(host, session.cpu(), mapped, gpu, kBytes);
  CHECK(hsa_amd_ipc_memory_detach(mapped));
  std::printf("last %d\n", host[kCount - 1]);
  return host[kCount - 1] == static_cast<int>(kCount) ? 0 : 1;
}

int shared_memory() {
  int ends[2] = {};
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  HsaSession session;
  return child != 0 ? give_to(child, ends[1], session) : take_from(ends[0], session);
}

}  // namespace

int main(int, char** arguments) {
  using Scenario = std::function<int(HsaSession&, const std::string&)>;
  const std::map<std::string, Scenario> scenarios = {
      {"arithmetic",
       [](HsaSession& session, const std::string& code) { return arithmetic(session, code, 0); }},
      {"second_gpu",
       [](HsaSession& session, const std::string& code) { return arithmetic(session, code, 1); }},
      {"unmapped", unmapped},
      {"in_flight", in_flight},
      {"ends", ends},
      {"virtual_memory", virtual_memory},
      {"sparse", sparse},
      {"other_memory", other_memory},
      {"peers", peers},
  };
  // Parent and child of a fork each have a driver of their own.
  const std::string scenario = arguments[1];
  if (scenario == "shared_memory") return shared_memory();
  const pid_t child = scenario == "forked" ? fork() : 0;
  // The runtime is shut down only by those that ended well: what a lost kernel holds can't be given back.
  auto* session = new HsaSession;
  int result = scenarios.at(scenario == "forked" ? "arithmetic" : scenario)(*session, arguments[2]);
  std::fflush(stdout);
  if (result != 0) std::_Exit(result);
  delete session;
  int status = 0;
  if (child > 0) result = waitpid(child, &status, 0) == child ? status : 1;
  return result;
}
