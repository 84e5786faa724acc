#include "queue/aql_queue.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "executor/kernel_name.h"

namespace softkfd {
namespace {

PacketType type_of(uint16_t header) { return static_cast<PacketType>(header & 0xff); }

bool holds(uint32_t condition, int64_t value, int64_t reference) {
  switch (condition) {
    case 0:
      return value == reference;
    case 1:
      return value != reference;
    case 2:
      return value < reference;
    default:
      return value >= reference;
  }
}

std::string shape(const std::array<uint32_t, 3>& sizes) {
  return std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "," + std::to_string(sizes[2]);
}

}  // namespace

AqlQueue::AqlQueue(const GpuParts& parts, const Ring& ring) : HardwareQueue(parts, ring) {
  std::atomic_ref(*ring.doorbell).store(last_doorbell_);  // a doorbell holds the index of the last packet
}

bool AqlQueue::process_next() {
  const uint64_t rung = doorbell();
  if (rung != last_doorbell_) {
    last_doorbell_ = rung;
    const uint64_t before = limit_;
    // Threads that share a queue ring in any order; what is written before the doorbell is there to be taken.
    limit_ = std::max({limit_, rung + 1, std::atomic_ref(*ring().write_index).load()});
    if (limit_ > before) found_.push_back({limit_, parts().log.done()});
  }
  if (next_ >= limit_) return false;
  const uint64_t place = ring().base + next_ * sizeof(Packet) % ring().bytes;
  auto* slot = parts().memory.object<Packet>(place);
  if (type_of(std::atomic_ref(slot->any.header).load()) == PacketType::kInvalid) return false;
  const Packet packet = *slot;
  if (!can_start(packet)) return false;
  std::atomic_ref(slot->any.header).store(static_cast<uint16_t>(PacketType::kInvalid));
  ++next_;
  std::atomic_ref(*ring().read_index).store(next_);
  execute(packet);
  return true;
}

bool AqlQueue::is_zero(uint64_t signal) const {
  if (signal == 0) return true;
  return std::atomic_ref(parts().memory.object<Signal>(signal)->value).load() == 0;
}

bool AqlQueue::can_start(const Packet& packet) const {
  const auto zero = [this](uint64_t signal) { return is_zero(signal); };
  const auto present_and_zero = [this](uint64_t signal) { return signal != 0 && is_zero(signal); };
  switch (type_of(packet.any.header)) {
    case PacketType::kBarrierAnd:
      return std::ranges::all_of(packet.barrier.signals, zero);
    case PacketType::kBarrierOr:
      return std::ranges::any_of(packet.barrier.signals, present_and_zero) ||
             std::ranges::count(packet.barrier.signals, 0U) == 5;
    case PacketType::kVendor: {
      const BarrierValuePacket& barrier = packet.barrier_value;
      if (static_cast<VendorFormat>(packet.any.format) != VendorFormat::kBarrierValue ||
          barrier.signal == 0) {
        return true;
      }
      auto* signal = parts().memory.object<Signal>(barrier.signal);
      return holds(barrier.condition, std::atomic_ref(signal->value).load() & barrier.mask, barrier.value);
    }
    default:
      return true;
  }
}

void AqlQueue::execute(const Packet& packet) {
  switch (type_of(packet.any.header)) {
    case PacketType::kKernel:
      launch(packet.kernel);
      break;
    case PacketType::kBarrierAnd:
    case PacketType::kBarrierOr:
    case PacketType::kVendor:
      log_barrier(packet);
      complete(packet.barrier.completion_signal, gpu_ticks());
      break;
    default:
      parts().refuse("AQL packet of type " + std::to_string(packet.any.header & 0xff) +
                     " can't be done by a GPU queue");
  }
}

void AqlQueue::launch(const KernelPacket& packet) {
  const uint64_t start = gpu_ticks();
  KernelDescriptor descriptor{};
  parts().memory.read(packet.kernel_object, &descriptor, sizeof(descriptor));
  Launch launch;
  launch.gpu = parts().gpu;
  launch.kernel = kernel_name(parts().memory, packet.kernel_object);
  launch.grid = packet.grid;
  std::ranges::copy(packet.workgroup, launch.workgroup.begin());
  launch.group_bytes = packet.group_bytes;
  launch.private_bytes = packet.private_bytes;
  launch.kernarg = packet.kernarg;
  launch.kernarg_bytes = descriptor.kernarg_bytes;
  launch.kernel_object = packet.kernel_object;
  launch.queue_record = ring().queue_record;
  while (found_.size() > 1 && found_.front().limit < next_) found_.pop_front();
  if (!found_.empty()) launch.done_before = found_.front().done;
  std::memcpy(launch.packet.data(), &packet, sizeof(packet));
  parts().log.line("kernel gpu=" + std::to_string(launch.gpu) + " name=" + launch.kernel +
                   " grid=" + shape(launch.grid) + " workgroup=" + shape(launch.workgroup) +
                   " lds=" + std::to_string(launch.group_bytes));
  sleep(parts().faults.delay(launch.kernel));
  try {
    if (!parts().executor.run(launch, parts().memory)) {
      parts().refuse("nothing here can run the kernel '" + launch.kernel +
                     "': run it by the emulator (softkfd-run --executor emu), or give a shadow function of "
                     "that name (SOFTKFD_SHADOWS)");
    }
  } catch (const Refusal& refusal) {
    parts().refuse("the kernel '" + launch.kernel + "' can't run here: " + refusal.what());
  } catch (const KernelTrap& trap) {
    parts().log.line("trap gpu=" + std::to_string(launch.gpu) + " kernel=" + launch.kernel);
    const std::string line = "softkfd: the kernel '" + launch.kernel + "': " + trap.what() + "\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    stop_with(kQueueTrap);
    return;
  }
  if (parts().faults.lost_completion.now()) return;
  complete(packet.completion_signal, start);
}

// {"pid", "gpu", "queue", "waits_for", "completes"}: what orders launches of several queues.
void AqlQueue::log_barrier(const Packet& packet) const {
  if (!parts().log.open()) return;
  std::string signals;
  const auto add = [&](uint64_t signal) {
    if (signal != 0) signals += (signals.empty() ? "" : ", ") + std::to_string(signal);
  };
  if (type_of(packet.any.header) == PacketType::kVendor) {
    add(packet.barrier_value.signal);
  } else {
    for (const uint64_t signal : packet.barrier.signals) add(signal);
  }
  parts().log.done_line("barrier {\"pid\": " + std::to_string(getpid()) + ", \"gpu\": " +
                        std::to_string(parts().gpu) + ", \"queue\": " + std::to_string(ring().queue_record) +
                        ", \"waits_for\": [" + signals + "], \"completes\": " +
                        std::to_string(packet.barrier.completion_signal) + "}");
}

template <typename T>
T AqlQueue::of_record(size_t offset) const {
  const auto* record =
      reinterpret_cast<const std::byte*>(ring().read_index) - offsetof(QueueRecord, read_index);
  T value{};
  std::memcpy(&value, record + offset, sizeof(value));
  return value;
}

bool AqlQueue::profiling() const {
  return (of_record<uint32_t>(offsetof(QueueRecord, properties)) & kQueueProfiling) != 0;
}

// The runtime learns it from a signal of the queue's record; what is in the queue behind it never starts.
void AqlQueue::stop_with(int64_t error) {
  halt();
  const auto address = of_record<uint64_t>(offsetof(QueueRecord, inactive_signal));
  if (address == 0) return;
  auto* signal = parts().memory.object<Signal>(address);
  std::atomic_ref(signal->value).fetch_or(error);
  wake(*signal);
}

void AqlQueue::wake(const Signal& signal) const {
  if (signal.mailbox != 0) {
    std::atomic_ref(*parts().memory.object<uint64_t>(signal.mailbox)).store(signal.event_id);
  }
  if (signal.event_id != 0) parts().events.set(signal.event_id);
}

void AqlQueue::complete(uint64_t signal_address, uint64_t start_ticks) const {
  if (signal_address == 0) return;
  auto* signal = parts().memory.object<Signal>(signal_address);
  if (profiling()) {
    signal->start_ticks = start_ticks;
    signal->end_ticks = std::max(gpu_ticks(), start_ticks + 1);
  }
  // The waiter may free the signal as soon as it sees the value.
  const Signal before = *signal;
  std::atomic_ref(signal->value).fetch_sub(1);
  wake(before);
}

}  // namespace softkfd
