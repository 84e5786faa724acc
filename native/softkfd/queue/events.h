// Events of the driver: what a thread of the process sleeps on until a queue or a fault wakes it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace softkfd {

// KFD_IOC_EVENT_* of linux/kfd_ioctl.h
enum class EventType : uint32_t { kSignal = 0, kHardwareException = 3, kMemory = 8 };

struct MemoryFault {
  uint64_t address = 0;
  uint32_t gpu_id = 0;
  bool present = false;
  bool read_only = false;
};

class Events {
 public:
  // The id of the new event, or nothing when there are too many.
  std::optional<uint32_t> create(EventType type, bool auto_reset);
  bool destroy(uint32_t id);
  bool set(uint32_t id);
  bool reset(uint32_t id);
  // By a kernel (S_SENDMSG), whose message holds no more than the low 8 bits of the event. Who is woken for another one
  // looks at its signal and sleeps on.
  void interrupt(uint32_t data);
  // To all who wait for memory faults.
  void raise(const MemoryFault& fault);

  struct Waited {
    uint32_t id = 0;
    uint64_t age = 0;  // in: what the caller has seen; 0: it does not count. out: what it is now
    std::optional<MemoryFault> fault;
  };
  enum class Outcome { kReady, kTimeout, kUnknownEvent };
  Outcome wait(std::span<Waited> waited, bool all, std::optional<std::chrono::milliseconds> limit);

 private:
  struct Event {
    EventType type = EventType::kSignal;
    bool auto_reset = false;
    bool signalled = false;
    uint64_t age = 1;
    std::optional<MemoryFault> fault;
  };
  bool ready(std::span<Waited> waited, bool all) const;
  [[nodiscard]] static bool is_ready(const Event& event, const Waited& waited);
  void collect(std::span<Waited> waited);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Event> events_;
};

}  // namespace softkfd
