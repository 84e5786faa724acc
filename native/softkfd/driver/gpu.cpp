#include "driver/gpu.h"

#include <atomic>
#include <new>
#include <utility>

#include "queue/aql_queue.h"
#include "queue/packets.h"
#include "queue/sdma_queue.h"

namespace softkfd {
namespace {

constexpr uint32_t kDoorbells = 1024;
constexpr uint64_t kDoorbellPage = kDoorbells * sizeof(uint64_t);
constexpr uint32_t kQueueIdBits = 12;  // ids are unique over all GPUs of the process

uint64_t doorbells_in(BackingStore& store) {
  const auto page = store.allocate(kDoorbellPage, kDoorbellPage);
  if (!page) throw std::bad_alloc();
  return *page;
}

}  // namespace

Gpu::Gpu(uint32_t number, BackingStore& store, Events& events, Executor& executor, Faults& faults,
         const Log& log, std::function<void(const std::string&)> refuse)
    : parts_{number, memory_, events, executor, faults, log, std::move(refuse)},
      memory_(store),
      store_(store),
      doorbell_page_(doorbells_in(store)) {}

std::optional<Gpu::QueueIdentity> Gpu::create_queue(const QueueRequest& request) {
  const std::scoped_lock lock(mutex_);
  uint32_t slot = 0;
  while (queues_.contains((parts_.gpu << kQueueIdBits) + slot)) ++slot;
  if (slot == kDoorbells) return std::nullopt;
  Ring ring;
  ring.base = request.ring_base;
  ring.bytes = request.ring_bytes;
  ring.read_index = memory_.object<uint64_t>(request.read_index);
  ring.queue_record = request.read_index - offsetof(QueueRecord, read_index);
  ring.write_index = memory_.object<uint64_t>(request.write_index);
  [[maybe_unused]] const auto* reachable = memory_.at(ring.base, ring.bytes, Access::kWrite);
  const uint64_t doorbell = doorbell_page_ + slot * sizeof(uint64_t);
  ring.doorbell = reinterpret_cast<uint64_t*>(store_.at(doorbell));
  std::atomic_ref(*ring.doorbell).store(0);
  std::unique_ptr<HardwareQueue> queue;
  if (request.type == QueueType::kAql) {
    queue = std::make_unique<AqlQueue>(parts_, ring);
  } else {
    queue = std::make_unique<SdmaQueue>(parts_, ring);
  }
  queue->start();
  const uint32_t id = (parts_.gpu << kQueueIdBits) + slot;
  queues_.emplace(id, std::move(queue));
  return QueueIdentity{id, doorbell};
}

bool Gpu::destroy_queue(uint32_t id) {
  std::unique_ptr<HardwareQueue> queue;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = queues_.find(id);
    if (found == queues_.end()) return false;
    queue = std::move(found->second);
    queues_.erase(found);
  }
  queue->stop();
  return true;
}

bool Gpu::has_queue(uint32_t id) const {
  const std::scoped_lock lock(mutex_);
  return queues_.contains(id);
}

}  // namespace softkfd
