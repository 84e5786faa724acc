// `large_memory CODE_OBJECT MEGABYTES dense|sparse`: one launch beside a lot of device memory, full of data
// or with data in its last page only.
#include <cstdio>
#include <random>
#include <string>

#include "hsa_session.h"

int main(int, char** arguments) {
  constexpr size_t kBlock = 16 << 20;
  const size_t bytes = std::stoull(arguments[2]) << 20;
  const bool dense = std::string(arguments[3]) == "dense";
  HsaSession session;
  const hsa_agent_t gpu = session.gpu().agent;
  auto* const memory = session.device_array<char>(bytes);
  auto* const host = session.host_array<uint64_t>(kBlock / sizeof(uint64_t));
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kBlock / sizeof(uint64_t); ++i) host[i] = random();
  for (size_t at = 0; dense && at < bytes; at += kBlock) {
    HsaSession::copy(memory + at, gpu, host, session.cpu(), std::min(kBlock, bytes - at));
  }
  constexpr size_t kPage = 4096;
  HsaSession::copy(memory + bytes - kPage, gpu, host, session.cpu(), kPage);
  struct AddInPlace {
    void* values;
    uint32_t count;
    int amount;
  };
  auto* const given = session.host_array<AddInPlace>(1);
  *given = {memory, 1, 5};
  {
    const Kernels kernels(arguments[1], gpu);
    Queue queue(gpu);
    queue.submit(kernels.packet("add_in_place", 1, given));
    queue.wait();
  }
  for (void* one : std::initializer_list<void*>{memory, host, given}) HsaSession::free(one);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) std::puts(line.c_str());
  }
  return 0;
}
