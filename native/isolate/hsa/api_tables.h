// The tables of functions that the runtime hands to its tools: which version they are of, what lies where in
// them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "hsa/abi.h"

namespace rpl::hsa {

enum class Table : uint8_t { kCore, kAmd };

// A function of type F at an offset of a table.
template <typename F>
struct Slot {
  Table table;
  uint16_t offset;
};

// Offsets in tables of major version 2 (ROCm 6.0 to 7.x); hsa_api_trace.h.
namespace core {
inline constexpr Slot<Status(uint32_t, void*)> kSystemGetInfo{Table::kCore, 32};
inline constexpr Slot<Status(Status (*)(Agent, void*), void*)> kIterateAgents{Table::kCore, 56};
inline constexpr Slot<Status(Agent, uint32_t, void*)> kAgentGetInfo{Table::kCore, 64};
inline constexpr Slot<Status(Agent, uint32_t, uint32_t, QueueCallback, void*, uint32_t, uint32_t, Queue**)>
    kQueueCreate{Table::kCore, 72};
inline constexpr Slot<Status(Queue*)> kQueueDestroy{Table::kCore, 88};
inline constexpr Slot<uint64_t(const Queue*)> kQueueLoadReadIndex{Table::kCore, 104};
inline constexpr Slot<uint64_t(const Queue*)> kQueueLoadWriteIndex{Table::kCore, 128};
inline constexpr Slot<uint64_t(const Queue*, uint64_t, uint64_t)> kQueueCasWriteIndex{Table::kCore, 152};
inline constexpr Slot<Status(Region, size_t, void**)> kMemoryAllocate{Table::kCore, 280};
inline constexpr Slot<Status(void*)> kMemoryFree{Table::kCore, 288};
inline constexpr Slot<Status(int64_t, uint32_t, const Agent*, Signal*)> kSignalCreate{Table::kCore, 312};
inline constexpr Slot<Status(Signal)> kSignalDestroy{Table::kCore, 320};
inline constexpr Slot<void(Signal, int64_t)> kSignalStoreRelease{Table::kCore, 352};
inline constexpr Slot<int64_t(Signal, uint32_t, int64_t, uint64_t, uint32_t)> kSignalWait{Table::kCore, 368};
inline constexpr Slot<void(Signal, int64_t)> kSignalSubtract{Table::kCore, 552};
inline constexpr Slot<Status(Executable)> kExecutableDestroy{Table::kCore, 688};
inline constexpr Slot<Status(Executable, const char*)> kExecutableFreeze{Table::kCore, 704};
inline constexpr Slot<Status(Symbol, uint32_t, void*)> kSymbolGetInfo{Table::kCore, 760};
inline constexpr Slot<Status(Executable, Status (*)(Executable, Symbol, void*), void*)> kIterateSymbols{
    Table::kCore, 768};
inline constexpr Slot<Status(Agent, Status (*)(Isa, void*), void*)> kAgentIterateIsas{Table::kCore, 880};
inline constexpr Slot<Status(Isa, uint32_t, void*)> kIsaGetInfo{Table::kCore, 888};
inline constexpr Slot<Status(int, CodeObjectReader*)> kReaderFromFile{Table::kCore, 936};
inline constexpr Slot<Status(const void*, size_t, CodeObjectReader*)> kReaderFromMemory{Table::kCore, 944};
inline constexpr Slot<Status(CodeObjectReader)> kReaderDestroy{Table::kCore, 952};
inline constexpr Slot<Status(Executable, Agent, CodeObjectReader, const char*, LoadedCodeObject*)>
    kLoadAgentCodeObject{Table::kCore, 976};
}  // namespace core

namespace amd {
inline constexpr Slot<Status(Queue*, int)> kSetProfilerEnabled{Table::kAmd, 32};
inline constexpr Slot<Status(Agent, Signal, DispatchTime*)> kGetDispatchTime{Table::kAmd, 48};
inline constexpr Slot<Status(Pool, uint32_t, void*)> kPoolGetInfo{Table::kAmd, 104};
inline constexpr Slot<Status(Agent, Status (*)(Pool, void*), void*)> kIteratePools{Table::kAmd, 112};
inline constexpr Slot<Status(Pool, size_t, uint32_t, void**)> kPoolAllocate{Table::kAmd, 120};
inline constexpr Slot<Status(void*)> kPoolFree{Table::kAmd, 128};
inline constexpr Slot<Status(void*, Agent, const void*, Agent, size_t, uint32_t, const Signal*, Signal)>
    kAsyncCopy{Table::kAmd, 136};
inline constexpr Slot<Status(uint32_t, const Agent*, const uint32_t*, const void*)> kAllowAccess{Table::kAmd,
                                                                                                 168};
inline constexpr Slot<Status(void*, size_t, Agent*, int, void**)> kMemoryLock{Table::kAmd, 192};
inline constexpr Slot<Status(void*)> kMemoryUnlock{Table::kAmd, 200};
inline constexpr Slot<Status(uint32_t, Agent*, int, uint32_t, size_t*, void**, size_t*, const void**)>
    kInteropMap{Table::kAmd, 216};
inline constexpr Slot<Status(void*)> kInteropUnmap{Table::kAmd, 224};
inline constexpr Slot<Status(const void*, PointerInfo*, void* (*)(size_t), uint32_t*, Agent**)> kPointerInfo{
    Table::kAmd, 240};
inline constexpr Slot<Status(const IpcHandle*, size_t, uint32_t, const Agent*, void**)> kIpcAttach{
    Table::kAmd, 264};
inline constexpr Slot<Status(void*)> kIpcDetach{Table::kAmd, 272};
inline constexpr Slot<Status(Agent, uint32_t, uint32_t, QueueCallback, void*, uint32_t, uint32_t, Queue**)>
    kInterceptCreate{Table::kAmd, 312};
inline constexpr Slot<Status(Queue*, PacketHandler, void*)> kInterceptRegister{Table::kAmd, 320};
inline constexpr Slot<Status(void*, size_t, Agent*, int, Pool, uint32_t, void**)> kLockToPool{Table::kAmd,
                                                                                              352};
inline constexpr Slot<Status(void*, size_t, SvmAttribute*, size_t)> kSvmAttributesSet{Table::kAmd, 384};
inline constexpr Slot<Status(void**, size_t, uint64_t, uint64_t)> kVmemReserve{Table::kAmd, 456};
inline constexpr Slot<Status(void*, size_t)> kVmemAddressFree{Table::kAmd, 464};
inline constexpr Slot<Status(Pool, size_t, uint32_t, uint64_t, VmemHandle*)> kVmemHandleCreate{Table::kAmd,
                                                                                               472};
inline constexpr Slot<Status(VmemHandle)> kVmemHandleRelease{Table::kAmd, 480};
inline constexpr Slot<Status(void*, size_t, size_t, VmemHandle, uint64_t)> kVmemMap{Table::kAmd, 488};
inline constexpr Slot<Status(void*, size_t)> kVmemUnmap{Table::kAmd, 496};
inline constexpr Slot<Status(void*, size_t, const MemoryAccess*, size_t)> kVmemSetAccess{Table::kAmd, 504};
inline constexpr Slot<Status(void**, size_t, uint64_t, uint64_t, uint64_t)> kVmemReserveAlign{Table::kAmd,
                                                                                              568};
}  // namespace amd

// Beginning of every table. The minor version is the size of the table in bytes.
struct TableVersion {
  uint32_t major;
  uint32_t minor;
  uint32_t step;
  uint32_t reserved;
};

// The table of tables, as far as the tool reads it.
struct ApiTable {
  TableVersion version;
  std::byte* core;
  std::byte* amd;
};
static_assert(offsetof(ApiTable, core) == 16 && offsetof(ApiTable, amd) == 24);

inline constexpr uint32_t kKnownMajor = 2;

// The runtime's own functions, and the places where the tool puts its hooks.
class ApiTables {
 public:
  // Empty when the tables can be used, else why not; nothing was touched then.
  std::string adopt(ApiTable* tables);

  // The function that was in the table before the tool's hooks; nullptr when the runtime has none.
  template <typename F>
  [[nodiscard]] F* original(Slot<F> slot) const {
    F* function = nullptr;
    const Saved& saved = slot.table == Table::kCore ? core_ : amd_;
    if (slot.offset + sizeof(function) <= saved.version.minor) {
      std::memcpy(static_cast<void*>(&function), saved.bytes.data() + slot.offset, sizeof(function));
    }
    return function;
  }
  template <typename F>
  [[nodiscard]] bool has(Slot<F> slot) const {
    return original(slot) != nullptr;
  }
  // False when the runtime has no such function: then nobody can call it either.
  template <typename F>
  bool hook(Slot<F> slot, F* function) {
    if (!has(slot)) return false;
    std::byte* table = slot.table == Table::kCore ? tables_->core : tables_->amd;
    std::memcpy(table + slot.offset, static_cast<const void*>(&function), sizeof(function));
    return true;
  }
  [[nodiscard]] TableVersion core_version() const { return core_.version; }
  [[nodiscard]] TableVersion amd_version() const { return amd_.version; }

 private:
  static constexpr size_t kLargest = 4096;
  struct Saved {
    TableVersion version{};
    std::array<std::byte, kLargest> bytes{};
  };
  static void save(const std::byte* table, Saved& saved);

  ApiTable* tables_ = nullptr;
  Saved core_, amd_;
};

}  // namespace rpl::hsa
