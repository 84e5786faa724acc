// The program's queues: emptied and held before a snapshot, let go after it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capture/runtime.h"

namespace rpl::isolate {

struct QueueRecord {
  hsa::Queue* queue = nullptr;
  hsa::Agent agent{};
  uint64_t id = 0;
  bool single_producer = false;
  std::atomic<bool> profiled{false};
  std::atomic<uint64_t> packets{0};
  // What a barrier shall count down when the queue is to be emptied; taken by who writes the barrier.
  std::atomic<uint64_t> drain_signal{0};
  // How many barriers were given it: the queue's own thread and a helper may both bring one.
  std::atomic<int64_t> drain_barriers{0};
};

struct Drained {
  uint64_t queue_id;
  bool single_producer;
  bool drained;
  uint64_t nanoseconds;
};

hsa::BarrierPacket barrier_packet(hsa::Signal completion);

class Queues {
 public:
  explicit Queues(const hsa::ApiTables& api) : api_(api) {}

  // Records stay for good: callbacks of a queue may come late.
  QueueRecord* add(hsa::Queue* queue, hsa::Agent agent, bool single_producer);
  void remove(const hsa::Queue* queue);
  QueueRecord* find(const hsa::Queue* queue);

  // From the callback of another queue, or a call that changes memory: waits while a snapshot is taken.
  // `writer` is nullptr where there is no queue.
  void pass(QueueRecord* record, hsa::PacketWriter writer);

  // Empties the queue whose callback this is.
  bool drain_own(hsa::PacketWriter writer, std::chrono::milliseconds limit, uint64_t& nanoseconds);
  // Nothing new is submitted from here on, except by this thread.
  void close();
  // Empties all others, by a barrier in each. Queues of one producer can't be given one: they are not
  // drained.
  std::vector<Drained> drain_others(const QueueRecord& own, std::chrono::milliseconds limit);
  void open();

 private:
  void inject(QueueRecord& record, hsa::Signal signal);
  std::vector<QueueRecord*> others(const QueueRecord& own);

  const hsa::ApiTables& api_;
  std::mutex mutex_;
  std::vector<QueueRecord*> alive_;
  std::mutex gate_mutex_;
  std::condition_variable opened_;
  std::atomic<bool> closed_{false};
  std::atomic<std::thread::id> owner_;
  std::vector<std::thread> helpers_;
  std::vector<std::pair<QueueRecord*, std::unique_ptr<TimedSignal>>> draining_;
};

}  // namespace rpl::isolate
