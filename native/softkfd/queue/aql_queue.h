// The command processor's side of a queue of AQL packets.
#pragma once

#include <deque>

#include "queue/hardware_queue.h"
#include "queue/packets.h"

namespace softkfd {

// Packets are done one after the other, also those without a barrier bit: an order that hardware may take
// too.
class AqlQueue : public HardwareQueue {
 public:
  AqlQueue(const GpuParts& parts, const Ring& ring);

 protected:
  bool process_next() override;

 private:
  [[nodiscard]] bool can_start(const Packet& packet) const;
  [[nodiscard]] bool is_zero(uint64_t signal) const;
  void execute(const Packet& packet);
  void launch(const KernelPacket& packet);
  void complete(uint64_t signal, uint64_t start_ticks) const;
  void log_barrier(const Packet& packet) const;
  // Of the runtime's record of this queue.
  template <typename T>
  [[nodiscard]] T of_record(size_t offset) const;
  [[nodiscard]] bool profiling() const;
  void stop_with(int64_t error);
  void wake(const Signal& signal) const;

  struct Found {
    uint64_t limit = 0;  // packets before this index
    uint64_t done = 0;   // were found when so many lines of the log were written
  };
  std::deque<Found> found_;

  uint64_t next_ = 0;
  uint64_t limit_ = 0;  // packets before this index have been rung for
  uint64_t last_doorbell_ = ~0ULL;
};

}  // namespace softkfd
