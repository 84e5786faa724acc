#include "launch/launcher.h"

#include <atomic>
#include <cstring>

#include "plan/failure.h"

namespace rpl::replay {
namespace {

constexpr uint32_t kPackets = 64;

}  // namespace

Launcher::Launcher(const HsaLibrary& hsa, hsa::Agent agent, Events& events)
    : hsa_(hsa), agent_(agent), events_(events) {
  hsa_.require(hsa_.queue_create(agent, kPackets, hsa::kQueueSingle, Events::on_queue_error, &events,
                                 UINT32_MAX, UINT32_MAX, &queue_),
               "internal", "the runtime gives no queue");
  hsa_.require(hsa_.profiler_enabled(queue_, 1), "internal", "the runtime does not measure launches");
  hsa_.require(hsa_.signal_create(1, 0, nullptr, &done_), "internal", "the runtime gives no signal");
}

Launcher::~Launcher() {
  hsa_.signal_destroy(done_);
  hsa_.queue_destroy(queue_);
}

uint64_t Launcher::launch(const hsa::DispatchPacket& packet, std::optional<uint64_t> limit_ns) {
  submit(packet);
  if (!wait_for(hsa_, done_, events_, limit_ns, "gpu_fault", "during the launch")) {
    throw Failure("time_limit", "the launch did not end in time",
                  "it waits for another kernel or for the host, or needs longer", "raise --kernel-timeout");
  }
  hsa::DispatchTime time{};
  hsa_.require(hsa_.dispatch_time(agent_, done_, &time), "internal",
               "the runtime tells no time of the launch");
  uint64_t hz = 0;
  hsa_.system_get_info(hsa::kSystemTimestampFrequency, &hz);
  constexpr double kNanoseconds = 1e9;
  return hz == 0 ? 0
                 : static_cast<uint64_t>(static_cast<double>(time.end - time.start) * kNanoseconds /
                                         static_cast<double>(hz));
}

void Launcher::submit(const hsa::DispatchPacket& packet) {
  hsa_.signal_store(done_, 1);
  hsa::DispatchPacket own = packet;
  own.completion_signal = done_;
  const uint64_t index = hsa_.queue_add_write_index(queue_, 1);  // all earlier ones are over
  auto* slot = static_cast<char*>(queue_->base_address) + index % queue_->size * hsa::kPacketBytes;
  constexpr size_t kFirst = sizeof(uint32_t);  // header and setup last, together
  std::memcpy(slot + kFirst, reinterpret_cast<const char*>(&own) + kFirst, hsa::kPacketBytes - kFirst);
  constexpr uint32_t kHeader =
      hsa::kPacketDispatch | hsa::kPacketBarrierBit | hsa::kPacketAcquireSystem | hsa::kPacketReleaseSystem;
  constexpr unsigned kSetupShift = 16;
  const uint32_t head = kHeader | (static_cast<uint32_t>(own.setup) << kSetupShift);
  std::atomic_ref(*reinterpret_cast<uint32_t*>(slot)).store(head, std::memory_order_release);
  hsa_.signal_store(queue_->doorbell_signal, static_cast<int64_t>(index));
}

}  // namespace rpl::replay
