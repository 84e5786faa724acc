// What the tool's callback costs a launch that is not captured, in nanoseconds of CPU, a line for each
// repetition.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "made_up_runtime.h"
#include "tool/hooks.h"

using namespace rpl;

int main() {
  constexpr uint64_t kLaunches = 1'000'000;
  constexpr uint32_t kKernels = 1000;
  constexpr int kRepetitions = 7;
  setenv("RPL_ISOLATE_OUTPUT", "/tmp/rpl-isolate-callback-cost", 1);
  setenv("RPL_ISOLATE_KERNEL", "^kernel_1", 1);
  setenv("RPL_ISOLATE_DISPATCH", "1000000000", 1);
  auto* const runtime = new made_up::Runtime;
  for (uint32_t i = 0; i < kKernels; ++i) {
    runtime->symbols.push_back(
        {"kernel_" + std::to_string(i) + ".kd", hsa::kSymbolKernel, 64ULL * (i + 1), 16});
  }
  isolate::load(runtime->tables());
  runtime->table(hsa::core::kExecutableFreeze)({3}, nullptr);
  hsa::Queue* queue = nullptr;
  runtime->table(hsa::core::kQueueCreate)(made_up::kGpu, 64, 0, nullptr, nullptr, 0, 0, &queue);
  const auto nothing = [](const void*, uint64_t) {};
  hsa::DispatchPacket packet{};
  packet.header = hsa::kPacketDispatch;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const std::clock_t start = std::clock();
    for (uint64_t i = 0; i < kLaunches; ++i) {
      packet.kernel_object = 64 * (i * 7919 % kKernels + 1);
      runtime->handler(&packet, 1, i, runtime->handler_data, nothing);
    }
    constexpr double kNanoseconds = 1e9 / CLOCKS_PER_SEC;
    std::printf("%.1f\n", static_cast<double>(std::clock() - start) * kNanoseconds / kLaunches);
  }
  return 0;
}
