#include "queue/hardware_queue.h"

#include <algorithm>
#include <ctime>

#include "topology/device.h"

namespace softkfd {
namespace {

// An idle queue looks at its doorbell this often: rarely enough for a small machine, often enough for tests.
constexpr auto kFirstPause = std::chrono::microseconds(10);
constexpr auto kLongestPause = std::chrono::microseconds(200);

}  // namespace

uint64_t gpu_ticks() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  const auto nanoseconds =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  return nanoseconds / (1'000'000'000 / Mi300x::kCounterHz);
}

void HardwareQueue::start() {
  thread_ = std::thread([this] { loop(); });
}

void HardwareQueue::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void HardwareQueue::loop() {
  auto pause = kFirstPause;
  while (!stopping_) {
    if (step()) {
      pause = kFirstPause;
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(kLongestPause));
  }
}

bool HardwareQueue::step() {
  if (halted_) return false;
  try {
    return process_next();
  } catch (const GpuFault& fault) {
    halted_ = true;
    MemoryFault raised;
    raised.address = fault.address();
    raised.gpu_id = gpu_id(parts_.gpu);
    raised.present = fault.present();
    raised.read_only = fault.present() && fault.access() == Access::kWrite;
    parts_.log.line("fault gpu=" + std::to_string(parts_.gpu) +
                    " address=" + std::to_string(fault.address()));
    parts_.events.raise(raised);
    return false;
  }
}

void HardwareQueue::sleep(std::chrono::milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!stopping_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace softkfd
