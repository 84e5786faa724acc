// Layouts of what the command processor reads and writes: AQL packets, signals, the queue's own record.
// Sources: HSA platform system architecture specification 1.2, section 2.9 (AQL); amd_hsa_signal.h and
// amd_hsa_queue.h of ROCR-Runtime (signals, queues); AMDGPU backend guide of LLVM (kernel descriptor).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace softkfd {

enum class PacketType : uint8_t { kVendor = 0, kInvalid, kKernel, kBarrierAnd, kAgent, kBarrierOr };

// Second byte pair of a vendor packet.
enum class VendorFormat : uint8_t { kPm4 = 1, kBarrierValue = 2 };

struct KernelPacket {
  uint16_t header;
  uint16_t setup;
  std::array<uint16_t, 3> workgroup;
  uint16_t reserved0;
  std::array<uint32_t, 3> grid;
  uint32_t private_bytes;
  uint32_t group_bytes;
  uint64_t kernel_object;
  uint64_t kernarg;
  uint64_t reserved2;
  uint64_t completion_signal;
};

struct BarrierPacket {
  uint16_t header;
  std::array<uint16_t, 3> reserved0;
  std::array<uint64_t, 5> signals;
  uint64_t reserved2;
  uint64_t completion_signal;
};

struct BarrierValuePacket {
  uint16_t header;
  uint8_t format;
  uint8_t reserved0;
  uint32_t reserved1;
  uint64_t signal;
  int64_t value;
  int64_t mask;
  uint32_t condition;  // hsa_signal_condition_t: 0 equal, 1 not equal, 2 less, 3 greater or equal
  uint32_t reserved2;
  uint64_t reserved3;
  uint64_t reserved4;
  uint64_t completion_signal;
};

union Packet {
  struct {
    uint16_t header;
    uint8_t format;
  } any;
  KernelPacket kernel;
  BarrierPacket barrier;
  BarrierValuePacket barrier_value;
};

struct Signal {
  int64_t kind;  // 1: a signal of the user
  int64_t value;
  uint64_t mailbox;
  uint32_t event_id;
  uint32_t reserved1;
  uint64_t start_ticks;
  uint64_t end_ticks;
  uint64_t queue;
  std::array<uint32_t, 2> reserved3;
};

// The runtime's record of a queue; the driver is only told where its read index lies.
struct QueueRecord {
  std::array<std::byte, 56> public_part;
  uint64_t write_index;
  std::array<std::byte, 64> apertures;
  uint64_t read_index;
  std::array<std::byte, 44> scratch;
  uint32_t properties;
  std::array<uint32_t, 2> reserved3;
  uint64_t inactive_signal;  // other than 0: the queue stopped, and why
};
constexpr uint32_t kQueueProfiling = 1U << 3;
// ROCR-Runtime, amd_aql_queue.cpp, DynamicQueueEventsHandler: a trap that no debugger takes.
constexpr int64_t kQueueTrap = 0x80000000;

struct KernelDescriptor {
  uint32_t group_bytes;
  uint32_t private_bytes;
  uint32_t kernarg_bytes;
  uint32_t reserved0;
  int64_t entry_offset;  // from the descriptor to the code; at the same place in the older amd_kernel_code_t
  std::array<std::byte, 40> rest;
};

static_assert(sizeof(KernelPacket) == 64 && offsetof(KernelPacket, kernel_object) == 32);
static_assert(sizeof(BarrierPacket) == 64 && offsetof(BarrierPacket, signals) == 8);
static_assert(sizeof(BarrierValuePacket) == 64 && offsetof(BarrierValuePacket, completion_signal) == 56);
static_assert(sizeof(Packet) == 64);
static_assert(sizeof(Signal) == 64 && offsetof(Signal, event_id) == 24 &&
              offsetof(Signal, start_ticks) == 32);
static_assert(offsetof(QueueRecord, write_index) == 56 && offsetof(QueueRecord, read_index) == 128);
static_assert(offsetof(QueueRecord, properties) == 180 && offsetof(QueueRecord, inactive_signal) == 192);
static_assert(sizeof(KernelDescriptor) == 64 && offsetof(KernelDescriptor, entry_offset) == 16);

}  // namespace softkfd
