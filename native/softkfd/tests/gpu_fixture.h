// A GPU's memory, events and executor for tests of queues, without threads: the test takes each step.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/backing_store.h"
#include "memory/page_table.h"
#include "queue/hardware_queue.h"
#include "queue/packets.h"

namespace softkfd {

class RecordingExecutor : public Executor {
 public:
  bool run(const Launch& launch, const PageTable& memory) override {
    launches.push_back(launch);
    if (during) during(memory);
    return known;
  }
  std::vector<Launch> launches;
  std::function<void(const PageTable&)> during;
  bool known = true;
};

struct GpuFixture {
  static constexpr uint64_t kBase = 0x7000'0000'0000;  // where a megabyte of memory is mapped
  static constexpr uint64_t kRing = kBase;
  static constexpr uint64_t kRecord = kBase + 0x10000;
  static constexpr uint64_t kSignals = kBase + 0x20000;
  static constexpr uint64_t kData = kBase + 0x40000;
  static constexpr uint64_t kBytes = 1 << 20;

  GpuFixture() {
    memory.map(kBase, kBytes, {store.at(store.allocate(kBytes, 0).value()), true});
    ring.base = kRing;
    ring.read_index = &memory.object<QueueRecord>(kRecord)->read_index;
    ring.write_index = &memory.object<QueueRecord>(kRecord)->write_index;
    ring.doorbell = &doorbell;
  }

  template <typename T>
  T& at(uint64_t address) {
    return *memory.object<T>(address);
  }
  uint64_t signal(int number, int64_t value, uint32_t event = 0) {
    const uint64_t address = kSignals + static_cast<uint64_t>(number) * sizeof(Signal);
    at<Signal>(address) = {};
    at<Signal>(address).kind = 1;
    at<Signal>(address).value = value;
    at<Signal>(address).event_id = event;
    return address;
  }

  BackingStore store{16 * kBytes};
  PageTable memory{store};
  Events events;
  RecordingExecutor executor;
  Faults faults;
  Log log;
  GpuParts parts{0, memory, events, executor, faults, log, [](const std::string& sentence) {
                   throw std::runtime_error(sentence);
                 }};
  uint64_t doorbell = 0;
  Ring ring;
};

}  // namespace softkfd
