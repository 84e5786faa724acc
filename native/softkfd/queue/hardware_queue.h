// A ring that the process fills and a thread of its own that empties it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "executor/executor.h"
#include "memory/page_table.h"
#include "queue/events.h"
#include "queue/faults.h"
#include "queue/log.h"

namespace softkfd {

// What queues of one GPU work with.
struct GpuParts {
  uint32_t gpu;
  PageTable& memory;
  Events& events;
  Executor& executor;
  Faults& faults;
  const Log& log;
  // Called with a sentence when a packet or kernel can't be done here; does not return in a process.
  std::function<void(const std::string&)> refuse;
};

// Ticks of the GPU's counter now, and of a nanosecond count of the raw monotonic clock.
uint64_t gpu_ticks();

struct Ring {
  uint64_t base = 0;
  uint64_t bytes = 0;
  uint64_t* read_index = nullptr;
  uint64_t* write_index = nullptr;
  uint64_t* doorbell = nullptr;
  uint64_t queue_record = 0;  // where the GPU finds the runtime's record of the queue
};

class HardwareQueue {
 public:
  HardwareQueue(GpuParts parts, const Ring& ring) : parts_(std::move(parts)), ring_(ring) {}
  virtual ~HardwareQueue() = default;
  HardwareQueue(const HardwareQueue&) = delete;
  HardwareQueue& operator=(const HardwareQueue&) = delete;

  void start();
  // Waits for a kernel that runs.
  void stop();

  // Takes the next packet if it can be done now; false when there is nothing to do yet.
  bool step();

 protected:
  virtual bool process_next() = 0;

  [[nodiscard]] const GpuParts& parts() const { return parts_; }
  [[nodiscard]] const Ring& ring() const { return ring_; }
  [[nodiscard]] uint64_t doorbell() const { return std::atomic_ref(*ring_.doorbell).load(); }
  // It takes no packet any more.
  void halt() { halted_ = true; }
  // Sleeps so long, or until the queue is destroyed.
  void sleep(std::chrono::milliseconds time) const;

 private:
  void loop();

  GpuParts parts_;
  Ring ring_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
  bool halted_ = false;  // after a fault the hardware goes on with nothing
};

}  // namespace softkfd
