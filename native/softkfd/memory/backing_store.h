// The bytes of all memory that the driver hands out: one sparse file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace softkfd {

// Device files are duplicates of this file, so that an offset which the driver gives for mmap is an offset in
// it. The GPU sees it through one mapping of the whole file, which costs nothing where nothing was written.
class BackingStore {
 public:
  explicit BackingStore(uint64_t bytes);
  ~BackingStore();
  BackingStore(const BackingStore&) = delete;
  BackingStore& operator=(const BackingStore&) = delete;

  // Offset of zeroed pages, or nothing when the file is full.
  std::optional<uint64_t> allocate(uint64_t bytes, uint64_t alignment);
  // The pages are given back to the system.
  void release(uint64_t offset, uint64_t bytes);

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::byte* at(uint64_t offset) const { return view_ + offset; }
  [[nodiscard]] bool holds(const std::byte* pointer) const;
  [[nodiscard]] uint64_t offset_of(const std::byte* pointer) const {
    return static_cast<uint64_t>(pointer - view_);
  }

  // Bytes from `offset` on that are all data or all hole, at most `bytes`.
  struct Extent {
    uint64_t bytes;
    bool is_hole;
  };
  [[nodiscard]] Extent extent(uint64_t offset, uint64_t bytes) const;
  // Zeroes without touching pages that are holes already.
  void zero(uint64_t offset, uint64_t bytes) const;
  [[nodiscard]] uint64_t resident_bytes() const;

 private:
  std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment);

  uint64_t bytes_;
  int file_ = -1;
  std::byte* view_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  // offset -> bytes, neighbours merged
  // Where the data ends that was looked at last: the system counts its pages each time that it is asked.
  mutable std::mutex known_mutex_;
  mutable uint64_t known_begin_ = 0, known_end_ = 0;
};

}  // namespace softkfd
