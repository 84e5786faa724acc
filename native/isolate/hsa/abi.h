// What the tool needs to know of HSA, declared here so that one build fits every runtime from ROCm 6.0 on and
// none is needed to build. Numbers and layouts are those of hsa.h, hsa_ext_amd.h and amd_hsa_signal.h of
// ROCr-Runtime (https://github.com/ROCm/rocm-systems, projects/rocr-runtime); native/tests compares them with
// real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rpl::hsa {

using Status = uint32_t;
inline constexpr Status kSuccess = 0;
inline constexpr Status kError = 0x1000;

struct Agent {
  uint64_t handle;
};
struct Region {
  uint64_t handle;
};
struct Pool {
  uint64_t handle;
};
struct Signal {
  uint64_t handle;
};
struct Executable {
  uint64_t handle;
};
struct Symbol {
  uint64_t handle;
};
struct CodeObjectReader {
  uint64_t handle;
};
struct LoadedCodeObject {
  uint64_t handle;
};
struct Isa {
  uint64_t handle;
};
struct VmemHandle {
  uint64_t handle;
};
struct IpcHandle {
  uint32_t handle[8];
};

struct Queue {
  uint32_t type;
  uint32_t features;
  void* base_address;
  Signal doorbell_signal;
  uint32_t size;
  uint32_t reserved1;
  uint64_t id;
};
enum QueueType : uint32_t { kQueueMulti = 0, kQueueSingle = 1 };

struct DispatchPacket {
  uint16_t header;
  uint16_t setup;
  uint16_t workgroup[3];
  uint16_t reserved0;
  uint32_t grid[3];
  uint32_t private_segment_size;
  uint32_t group_segment_size;
  uint64_t kernel_object;
  uint64_t kernarg_address;
  uint64_t reserved2;
  Signal completion_signal;
};
struct BarrierPacket {
  uint16_t header;
  uint16_t reserved0;
  uint32_t reserved1;
  Signal dependencies[5];
  uint64_t reserved2;
  Signal completion_signal;
};
inline constexpr size_t kPacketBytes = 64;
static_assert(sizeof(DispatchPacket) == kPacketBytes && sizeof(BarrierPacket) == kPacketBytes);
static_assert(offsetof(DispatchPacket, kernel_object) == 32 &&
              offsetof(BarrierPacket, completion_signal) == 56);

enum PacketType : uint16_t { kPacketInvalid = 1, kPacketDispatch = 2, kPacketBarrierAnd = 3 };
inline constexpr uint16_t kPacketTypeMask = 0xff;
inline constexpr uint16_t kPacketBarrierBit = 1U << 8;
inline constexpr uint16_t kPacketAcquireSystem = 2U << 9;
inline constexpr uint16_t kPacketReleaseSystem = 2U << 11;

// What a signal's handle points to, as far as the tool reads it.
struct SignalMemory {
  int64_t kind;
  int64_t value;
  uint64_t event_mailbox;
  uint32_t event_id;
  uint32_t reserved1;
  uint64_t start_ticks;
  uint64_t end_ticks;
};
static_assert(offsetof(SignalMemory, start_ticks) == 32);

struct DispatchTime {
  uint64_t start;
  uint64_t end;
};

struct MemoryAccess {
  uint32_t permissions;
  Agent agent;
};
static_assert(sizeof(MemoryAccess) == 16);

struct SvmAttribute {
  uint64_t attribute;
  uint64_t value;
};

struct PointerInfo {
  uint32_t size;
  uint32_t type;
  void* agent_base;
  void* host_base;
  size_t bytes;
  void* user_data;
  Agent owner;
  uint32_t pool_flags;
  bool registered;
};
static_assert(offsetof(PointerInfo, owner) == 40 && sizeof(PointerInfo) == 56);

using QueueCallback = void (*)(Status, Queue*, void*);
using PacketWriter = void (*)(const void* packets, uint64_t count);
using PacketHandler = void (*)(const void* packets, uint64_t count, uint64_t user_index, void* data,
                               PacketWriter writer);

enum AgentInfo : uint32_t {
  kAgentName = 0,
  kAgentWavefrontSize = 6,
  kAgentDevice = 17,
  kAgentComputeUnits = 0xA002,
  kAgentDriverNode = 0xA004,
  kAgentBdf = 0xA006,
  kAgentProductName = 0xA009,
  kAgentDomain = 0xA00F,
  kAgentUuid = 0xA011,
};
enum DeviceType : uint32_t { kDeviceCpu = 0, kDeviceGpu = 1 };
enum SystemInfo : uint32_t {
  kSystemVersionMajor = 0,
  kSystemVersionMinor = 1,
  kSystemTimestampFrequency = 3,
  kSystemBuildVersion = 0x200,
};
enum PoolInfo : uint32_t { kPoolSegment = 0, kPoolFlags = 1, kPoolAllocAllowed = 5 };
enum PoolFlag : uint32_t { kPoolKernarg = 1, kPoolFineGrained = 2, kPoolCoarseGrained = 4 };
enum IsaInfo : uint32_t { kIsaNameLength = 0, kIsaName = 1 };
enum SymbolInfo : uint32_t {
  kSymbolType = 0,
  kSymbolNameLength = 1,
  kSymbolName = 2,
  kSymbolVariableSize = 9,
  kSymbolGroupSegmentSize = 13,
  kSymbolPrivateSegmentSize = 14,
  kSymbolKernargSegmentSize = 11,
  kSymbolAgent = 20,
  kSymbolVariableAddress = 21,
  kSymbolKernelObject = 22,
};
enum SymbolKind : uint32_t { kSymbolVariable = 0, kSymbolKernel = 1 };
enum PointerType : uint32_t { kPointerUnknown = 0, kPointerHsa = 1, kPointerLocked = 2 };
enum SvmAttributeKind : uint64_t {
  kSvmAgentAccessible = 0x200,
  kSvmAccessibleInPlace = 0x201,
  kSvmNoAccess = 0x202
};

inline constexpr uint32_t kConditionLess = 2;
inline constexpr uint32_t kWaitBlocked = 0;
inline constexpr uint32_t kPermissionReadOnly = 1;

}  // namespace rpl::hsa
