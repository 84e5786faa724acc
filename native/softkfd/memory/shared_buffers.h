// Buffers that another process may map: by a token of four words, which the runtime passes on as it likes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "memory/allocations.h"
#include "memory/backing_store.h"
#include "memory/interval_map.h"

namespace softkfd {

using ShareToken = std::array<uint32_t, 4>;

// What is shared is listed in the first pages of the backing store, which the other process opens through
// /proc.
class SharedBuffers {
 public:
  SharedBuffers(BackingStore& store, Allocations& allocations);

  // Nothing for memory that isn't in the store, or when the list is full.
  std::optional<ShareToken> publish(uint64_t handle);
  // A buffer of this process itself, or one whose bytes are those of the other process.
  [[nodiscard]] std::shared_ptr<Buffer> open(const ShareToken& token) const;

  // An offset in the own file by which mmap shall find the bytes of a buffer of another process. Such an
  // offset is never used again.
  std::optional<uint64_t> window(const std::shared_ptr<Buffer>& buffer);
  struct Place {
    int file;
    uint64_t offset;
  };
  // Where what is at an offset of the own file really lies, when that is in another process's file.
  [[nodiscard]] std::optional<Place> foreign(uint64_t offset) const;

 private:
  struct Entry {
    uint64_t handle;  // 0: free
    uint64_t offset;
    uint64_t bytes;
  };
  static constexpr uint64_t kEntries = 1024;
  struct Window {
    std::shared_ptr<Buffer> buffer;
    uint64_t passed = 0;
    [[nodiscard]] Window later(uint64_t bytes) const { return {buffer, passed + bytes}; }
  };

  [[nodiscard]] static std::shared_ptr<Buffer> open_of_process(const ShareToken& token);

  BackingStore& store_;
  Allocations& allocations_;
  mutable std::mutex mutex_;
  IntervalMap<Window> windows_;
  Entry* entries_;
};

}  // namespace softkfd
