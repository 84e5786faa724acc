// Buffers of the driver by handle: what they are, where their bytes lie, and which GPUs map them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "memory/page_table.h"

namespace softkfd {

class BackingStore;

// kForeign: bytes of another process, mapped here.
enum class Kind { kVram, kSystem, kUserPointer, kDoorbell, kRegisters, kForeign };

struct Buffer {
  ~Buffer();

  BackingStore* store = nullptr;
  Kind kind = Kind::kVram;
  uint32_t gpu = 0;
  uint64_t address = 0;  // where the GPUs see it; 0: nowhere until somebody maps it explicitly
  uint64_t bytes = 0;
  bool writable = true;
  std::optional<uint64_t> offset;  // in the backing store; a user pointer has none
  std::byte* host = nullptr;
  // Of bytes of another process: its file, held open, and where in it they lie.
  int file = -1;
  uint64_t file_offset = 0;
  // What this buffer shows another place of; that lives as long.
  std::shared_ptr<Buffer> original;
};

// A buffer lives while somebody holds it: the handle of its owner, or an import through a file descriptor.
class Allocations {
 public:
  explicit Allocations(BackingStore& store) : store_(store) {}

  // The handle, or nothing when memory has run out. `user_pointer` is the memory of the process for
  // Kind::kUserPointer. With `shared_offset` the bytes lie where others have put them (doorbells).
  std::optional<uint64_t> create(Buffer&& wanted, std::optional<uint64_t> shared_offset = std::nullopt);
  [[nodiscard]] std::shared_ptr<Buffer> find(uint64_t handle) const;
  bool free(uint64_t handle);
  [[nodiscard]] uint64_t used_vram(uint32_t gpu) const;

 private:
  BackingStore& store_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Buffer>> buffers_;
  uint64_t next_ = 1;
};

}  // namespace softkfd
