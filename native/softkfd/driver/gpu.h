// One GPU as its driver keeps it: address space, doorbells, queues.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "memory/allocations.h"
#include "memory/backing_store.h"
#include "memory/page_table.h"
#include "queue/hardware_queue.h"

namespace softkfd {

enum class QueueType : uint32_t { kCompute = 0, kSdma = 1, kAql = 2, kSdmaXgmi = 3, kSdmaByEngine = 4 };

class Gpu {
 public:
  Gpu(uint32_t number, BackingStore& store, Events& events, Executor& executor, Faults& faults,
      const Log& log, std::function<void(const std::string&)> refuse);

  PageTable& memory() { return memory_; }
  // All doorbells of this GPU, in the backing store.
  [[nodiscard]] uint64_t doorbell_page() const { return doorbell_page_; }

  struct QueueRequest {
    QueueType type;
    uint64_t ring_base;
    uint64_t ring_bytes;
    uint64_t read_index;
    uint64_t write_index;
  };
  struct QueueIdentity {
    uint32_t id;
    uint64_t doorbell_offset;
  };
  // Nothing when there is no doorbell left; throws GpuFault when the GPU can't reach the ring or its indices.
  std::optional<QueueIdentity> create_queue(const QueueRequest& request);
  bool destroy_queue(uint32_t id);
  [[nodiscard]] bool has_queue(uint32_t id) const;

 private:
  GpuParts parts_;
  PageTable memory_;
  BackingStore& store_;
  uint64_t doorbell_page_;
  mutable std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<HardwareQueue>> queues_;
};

}  // namespace softkfd
