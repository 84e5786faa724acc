#include "capture/queues.h"

#include <algorithm>
#include <cstring>

namespace rpl::isolate {
namespace {

using Clock = std::chrono::steady_clock;

// Doorbells that helpers ring run callbacks on the helper's thread: these packets are the tool's own.
thread_local bool is_helper = false;

uint64_t since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace

hsa::BarrierPacket barrier_packet(hsa::Signal completion) {
  hsa::BarrierPacket packet{};
  packet.header =
      hsa::kPacketBarrierAnd | hsa::kPacketBarrierBit | hsa::kPacketAcquireSystem | hsa::kPacketReleaseSystem;
  packet.completion_signal = completion;
  return packet;
}

QueueRecord* Queues::add(hsa::Queue* queue, hsa::Agent agent, bool single_producer) {
  auto* const record = new QueueRecord;
  record->queue = queue;
  record->agent = agent;
  record->id = queue->id;
  record->single_producer = single_producer;
  const std::scoped_lock lock(mutex_);
  alive_.push_back(record);
  return record;
}

void Queues::remove(const hsa::Queue* queue) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(alive_, [queue](const QueueRecord* one) { return one->queue == queue; });
}

QueueRecord* Queues::find(const hsa::Queue* queue) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(alive_, [queue](const QueueRecord* one) { return one->queue == queue; });
  return found == alive_.end() ? nullptr : *found;
}

void Queues::pass(QueueRecord* record, hsa::PacketWriter writer) {
  if (!closed_.load(std::memory_order_acquire)) return;
  if (is_helper || owner_.load() == std::this_thread::get_id()) return;
  if (record != nullptr && writer != nullptr) {
    // This thread holds the queue's lock, so that a helper can't bring its barrier in.
    ++record->drain_barriers;
    if (const uint64_t signal = record->drain_signal.exchange(0); signal != 0) {
      const hsa::BarrierPacket barrier = barrier_packet({signal});
      writer(&barrier, 1);
    } else {
      --record->drain_barriers;
    }
  }
  std::unique_lock lock(gate_mutex_);
  opened_.wait(lock, [this] { return !closed_.load(); });
}

bool Queues::drain_own(hsa::PacketWriter writer, std::chrono::milliseconds limit, uint64_t& nanoseconds) {
  const auto start = Clock::now();
  TimedSignal done(api_, 1);
  if (!done.is_valid()) return false;
  const hsa::BarrierPacket barrier = barrier_packet(done.give());
  writer(&barrier, 1);
  const bool drained = done.wait_until(start + limit);
  nanoseconds = since(start);
  return drained;
}

void Queues::close() {
  owner_ = std::this_thread::get_id();
  closed_.store(true, std::memory_order_release);
}

void Queues::open() {
  {
    const std::scoped_lock lock(gate_mutex_);
    closed_ = false;
  }
  opened_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
  // A signal that may still be counted down is kept for good.
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  for (auto& [record, signal] : draining_) {
    record->drain_signal.exchange(0);
    signal->wait_until(deadline, 2 - record->drain_barriers.load());
  }
  draining_.clear();
}

std::vector<QueueRecord*> Queues::others(const QueueRecord& own) {
  const std::scoped_lock lock(mutex_);
  std::vector<QueueRecord*> found;
  std::ranges::copy_if(alive_, std::back_inserter(found),
                       [&own](const QueueRecord* one) { return one != &own && one->packets.load() != 0; });
  return found;
}

std::vector<Drained> Queues::drain_others(const QueueRecord& own, std::chrono::milliseconds limit) {
  const auto start = Clock::now();
  const std::vector<QueueRecord*> records = others(own);
  std::vector<Drained> result;
  for (QueueRecord* record : records) {
    if (record->single_producer) {
      result.push_back({record->id, true, false, 0});
      continue;
    }
    draining_.emplace_back(record, std::make_unique<TimedSignal>(api_, 1));
    const hsa::Signal signal = draining_.back().second->give();
    record->drain_barriers = 0;
    record->drain_signal = signal.handle;
    helpers_.emplace_back([this, record, signal] { inject(*record, signal); });
  }
  for (auto& [record, signal] : draining_) {
    const bool drained = signal->wait_until(start + limit);
    result.push_back({record->id, false, drained, since(start)});
  }
  return result;
}

// Through the ring that the program sees, as a further producer would.
void Queues::inject(QueueRecord& record, hsa::Signal signal) {
  is_helper = true;
  const hsa::Queue* const queue = record.queue;
  const auto read_index = api_.original(hsa::core::kQueueLoadReadIndex);
  const auto write_index = api_.original(hsa::core::kQueueLoadWriteIndex);
  const auto cas = api_.original(hsa::core::kQueueCasWriteIndex);
  uint64_t index = write_index(queue);
  for (;;) {
    if (!closed_.load() || record.drain_signal.load() == 0)
      return;  // too late, or done by the queue's own thread
    if (index - read_index(queue) >= queue->size) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      index = write_index(queue);
      continue;
    }
    const uint64_t seen = cas(queue, index, index + 1);
    if (seen == index) break;
    index = seen;
  }
  ++record.drain_barriers;
  // From here on the place in the ring is ours and has to be filled. The signal stays for the queue's own
  // thread: it may be waiting in the callback, with the lock that our doorbell needs.
  const hsa::BarrierPacket packet = barrier_packet(signal);
  auto* const slot = static_cast<std::byte*>(queue->base_address) + index % queue->size * hsa::kPacketBytes;
  constexpr size_t kHeaderBytes = sizeof(uint32_t);
  std::memcpy(slot + kHeaderBytes, reinterpret_cast<const std::byte*>(&packet) + kHeaderBytes,
              hsa::kPacketBytes - kHeaderBytes);
  std::atomic_ref(*reinterpret_cast<uint32_t*>(slot)).store(packet.header, std::memory_order_release);
  api_.original(hsa::core::kSignalStoreRelease)(queue->doorbell_signal, static_cast<int64_t>(index));
}

}  // namespace rpl::isolate
