// Every range of memory that the program has from the runtime.
#pragma once

#include <mutex>
#include <vector>

#include "hsa/abi.h"
#include "memory/interval_table.h"

namespace rpl::isolate {

enum class Kind : uint8_t { kPool, kHsaMemory, kVmem, kSvm, kLockedHost, kIpc, kInterop };

// One allocation, one mapping of virtual memory, or one range that a GPU was given access to.
struct Allocation {
  uint64_t base = 0;
  uint64_t size = 0;
  Kind kind = Kind::kPool;
  uint32_t permissions = 0;    // vmem: what the agent below was given
  uint64_t pool = 0;           // pools: its handle; vmem: that of the handle
  uint64_t handle = 0;         // vmem
  uint64_t in_offset = 0;      // vmem
  uint64_t reservation = 0;    // vmem: address of the reserved range
  uint64_t reserved_size = 0;  // vmem
  uint64_t host = 0;           // locked host memory: where the program has it
  uint32_t uses = 1;           // locked host memory: how often it was locked
};

class MemoryMap {
 public:
  static constexpr size_t kMostRecords = 1 << 22;
  explicit MemoryMap(size_t most = kMostRecords);

  void add(const Allocation& allocation);
  // Taken out before the runtime frees it, so that another thread which is given the same address is not
  // undone; put back by `add` when freeing failed.
  std::optional<Allocation> remove(uint64_t base);
  // Locked memory is given back by its address in the program.
  std::optional<Allocation> remove_locked(uint64_t host);

  void reserve(uint64_t base, uint64_t size);
  void unreserve(uint64_t base);
  void create_handle(uint64_t handle, uint64_t pool);
  void release_handle(uint64_t handle);
  void map(uint64_t base, uint64_t size, uint64_t in_offset, uint64_t handle);
  void unmap(uint64_t base, uint64_t size);
  void set_access(uint64_t base, uint64_t size, const hsa::MemoryAccess* access, size_t count);
  void give_svm(uint64_t base, uint64_t size);
  void take_svm(uint64_t base, uint64_t size);

  // In the order of addresses. Memory of virtual mappings only where the agent has access.
  std::vector<Allocation> reachable_by(uint64_t agent);
  // Records were lost: no capture can be whole.
  bool exhausted();

 private:
  struct Range {
    uint64_t base, size, pool;
  };
  struct Access {
    uint64_t mapping, agent;
    uint32_t permissions;
  };
  void keep(bool kept) { exhausted_ = exhausted_ || !kept; }
  void give_access(uint64_t mapping, const hsa::MemoryAccess& access);
  [[nodiscard]] uint32_t permissions_of(uint64_t mapping, uint64_t agent) const;
  void forget_access(uint64_t base, uint64_t size);

  std::mutex mutex_;
  bool exhausted_ = false;
  IntervalTable<Allocation> allocations_;
  IntervalTable<Range> reservations_;
  IntervalTable<Range> handles_;  // base: the handle
  MappedArray<Access> access_;
  // Ranges of SVM lie where other allocations may be too: kept apart, so that neither hides the other.
  IntervalTable<Allocation> svm_;
};

}  // namespace rpl::isolate
