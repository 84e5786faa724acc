#include "queue/aql_queue.h"

#include <doctest/doctest.h>

#include "tests/gpu_fixture.h"

namespace softkfd {
namespace {

constexpr uint64_t kSlots = 8;
constexpr uint64_t kDescriptor = GpuFixture::kData;
constexpr uint16_t kInvalid = 1;

struct AqlFixture : GpuFixture {
  AqlFixture() {
    ring.bytes = kSlots * sizeof(Packet);
    for (uint64_t slot = 0; slot < kSlots; ++slot) this->slot(slot).any.header = kInvalid;
  }
  Packet& slot(uint64_t index) { return at<Packet>(kRing + index % kSlots * sizeof(Packet)); }
  uint64_t& read_index() { return at<QueueRecord>(kRecord).read_index; }

  void put(const Packet& packet) {
    slot(written) = packet;
    ++written;
  }
  void ring_doorbell() { doorbell = written - 1; }

  static Packet kernel(uint64_t signal, uint32_t grid = 64) {
    Packet packet{};
    packet.kernel = {};
    packet.kernel.header = static_cast<uint16_t>(PacketType::kKernel);
    packet.kernel.workgroup = {64, 1, 1};
    packet.kernel.grid = {grid, 1, 1};
    packet.kernel.group_bytes = 512;
    packet.kernel.kernel_object = kDescriptor;
    packet.kernel.completion_signal = signal;
    return packet;
  }
  static Packet barrier(PacketType type, std::array<uint64_t, 5> signals, uint64_t completion) {
    Packet packet{};
    packet.barrier = {};
    packet.barrier.header = static_cast<uint16_t>(type);
    packet.barrier.signals = signals;
    packet.barrier.completion_signal = completion;
    return packet;
  }

  uint64_t written = 0;
};

TEST_CASE_FIXTURE(AqlFixture, "a kernel runs when the doorbell rings, and its signal counts down") {
  AqlQueue queue(parts, ring);
  const uint32_t event = events.create(EventType::kSignal, false).value();
  const uint64_t done = signal(0, 1, event);
  put(kernel(done));
  CHECK_FALSE(queue.step());
  ring_doorbell();
  CHECK(queue.step());
  CHECK_FALSE(queue.step());
  REQUIRE(executor.launches.size() == 1);
  CHECK(executor.launches[0].group_bytes == 512);
  CHECK(at<Signal>(done).value == 0);
  CHECK(at<Signal>(done).end_ticks == 0);  // profiling is off
  CHECK(read_index() == 1);
  CHECK(slot(0).any.header == kInvalid);
  std::array<Events::Waited, 1> waited = {Events::Waited{event, 0, {}}};
  CHECK(events.wait(waited, true, std::chrono::milliseconds(0)) == Events::Outcome::kReady);
}

TEST_CASE_FIXTURE(AqlFixture, "a profiled queue stamps begin before end") {
  at<QueueRecord>(kRecord).properties = kQueueProfiling;
  AqlQueue queue(parts, ring);
  const uint64_t done = signal(0, 1);
  put(kernel(done));
  ring_doorbell();
  const uint64_t before = gpu_ticks();
  queue.step();
  CHECK(at<Signal>(done).start_ticks >= before);
  CHECK(at<Signal>(done).end_ticks > at<Signal>(done).start_ticks);
}

TEST_CASE_FIXTURE(AqlFixture, "barriers wait: for all signals, for any, and for a condition") {
  AqlQueue queue(parts, ring);
  const uint64_t first = signal(0, 1);
  const uint64_t second = signal(1, 1);
  const uint64_t done = signal(2, 3);
  put(barrier(PacketType::kBarrierAnd, {first, second, 0, 0, 0}, done));
  put(barrier(PacketType::kBarrierOr, {first, second, 0, 0, 0}, done));
  Packet condition{};
  condition.barrier_value = {};
  condition.barrier_value.header = static_cast<uint16_t>(PacketType::kVendor);
  condition.barrier_value.format = static_cast<uint8_t>(VendorFormat::kBarrierValue);
  condition.barrier_value.signal = second;
  condition.barrier_value.value = 5;
  condition.barrier_value.mask = -1;
  condition.barrier_value.condition = 3;
  condition.barrier_value.completion_signal = done;
  put(condition);
  ring_doorbell();
  CHECK_FALSE(queue.step());
  at<Signal>(first).value = 0;
  CHECK_FALSE(queue.step());
  at<Signal>(second).value = 0;
  CHECK(queue.step());
  at<Signal>(second).value = 1;
  CHECK(queue.step());
  CHECK_FALSE(queue.step());
  at<Signal>(second).value = 5;
  CHECK(queue.step());
  CHECK(at<Signal>(done).value == 0);
}

TEST_CASE_FIXTURE(AqlFixture, "a packet that is not written yet holds back those behind it") {
  AqlQueue queue(parts, ring);
  put(kernel(0));
  put(kernel(0, 128));
  slot(0).any.header = kInvalid;
  ring_doorbell();
  CHECK_FALSE(queue.step());
  slot(0).any.header = static_cast<uint16_t>(PacketType::kKernel);
  CHECK(queue.step());
  CHECK(queue.step());
  CHECK(executor.launches[1].grid[0] == 128);
}

TEST_CASE_FIXTURE(AqlFixture, "the ring goes round") {
  AqlQueue queue(parts, ring);
  for (uint32_t i = 0; i < 3 * kSlots; ++i) {
    put(kernel(0, i));
    ring_doorbell();
    CHECK(queue.step());
  }
  CHECK(executor.launches.back().grid[0] == 3 * kSlots - 1);
  CHECK(read_index() == 3 * kSlots);
}

TEST_CASE_FIXTURE(AqlFixture, "after a fault the queue stands still and the fault is raised") {
  AqlQueue queue(parts, ring);
  std::array<Events::Waited, 1> faulted = {
      Events::Waited{events.create(EventType::kMemory, false).value(), 0, {}}};
  executor.during = [](const PageTable& given) { (void)given.at(0x1000, 4, Access::kWrite); };
  const uint64_t done = signal(0, 2);
  put(kernel(done));
  put(kernel(done));
  ring_doorbell();
  CHECK_FALSE(queue.step());
  CHECK_FALSE(queue.step());
  CHECK(executor.launches.size() == 1);
  CHECK(at<Signal>(done).value == 2);
  REQUIRE(events.wait(faulted, true, std::chrono::milliseconds(0)) == Events::Outcome::kReady);
  CHECK(faulted[0].fault->address == 0x1000);
}

TEST_CASE_FIXTURE(AqlFixture,
                  "a kernel that nobody knows is refused by its name, and a lost one never ends") {
  faults.parse("lost=1");
  AqlQueue queue(parts, ring);
  const uint64_t done = signal(0, 2);
  put(kernel(done));
  put(kernel(done));
  ring_doorbell();
  queue.step();
  CHECK(at<Signal>(done).value == 2);
  executor.known = false;
  CHECK_THROWS_WITH(queue.step(), doctest::Contains("code:"));
}

}  // namespace
}  // namespace softkfd
