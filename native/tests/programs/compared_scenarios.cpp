// `compared_scenarios KERNEL CODE_OBJECT`: one launch of a kernel of compared.hip over 1000 numbers. Exit: 0 right, 1
// wrong, 70 a call of the runtime failed.
#include <cstdio>
#include <string>
#include <vector>

#include "hsa_session.h"

namespace {

constexpr uint32_t kCount = 1000;
constexpr uint32_t kItems = 256;

// Of very different sizes, so that sums depend on the order.
std::vector<float> numbers() {
  std::vector<float> values(kCount);
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) / static_cast<float>(1U << (state >> 4 & 15U));
  }
  return values;
}

struct Arguments {
  const float* values;
  float* sums;
  uint32_t* rounds;
  uint32_t count;
};

struct TotalArguments {
  const float* values;
  float* sum;
  uint32_t count;
};

}  // namespace

int main(int, char** words) {
  const std::string scenario = words[1];
  HsaSession session;
  const Kernels kernels(words[2], session.gpu().agent);
  Queue queue(session.gpu().agent);
  auto* values = session.device_array<float>(kCount);
  auto* sums = session.device_array<float>(kItems);
  auto* rounds = session.device_array<uint32_t>(1);
  auto* host = session.host_array<float>(kCount);
  const std::vector<float> given = numbers();
  std::memcpy(host, given.data(), given.size() * sizeof(float));
  HsaSession::copy(values, session.gpu().agent, host, session.cpu(), kCount * sizeof(float));
  const bool total = scenario == "total";
  auto* arguments = session.host_array<Arguments>(1);
  *arguments = {values, sums, rounds, kCount};
  auto* total_arguments = session.host_array<TotalArguments>(1);
  *total_arguments = {values, sums, kCount};
  void* chosen = total ? static_cast<void*>(total_arguments) : arguments;
  hsa_kernel_dispatch_packet_t packet =
      kernels.packet(total ? "_Z5totalPKfPf5Count" : "_Z10block_sumsPKfPfPj5Count", 4 * kItems, chosen);
  packet.workgroup_size_x = kItems;
  queue.submit(packet);
  queue.wait();
  HsaSession::copy(host, session.cpu(), sums, session.gpu().agent, sizeof(float));
  std::printf("right %d\n", host[0] > 0);
  return host[0] > 0 ? 0 : 1;
}
