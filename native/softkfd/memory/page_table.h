// Which bytes a GPU reaches at which address. What isn't mapped is a fault, as on hardware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <shared_mutex>
#include <vector>

#include "memory/interval_map.h"

namespace softkfd {

class BackingStore;

enum class Access { kRead, kWrite };

// A GPU touched an address that it may not touch.
class GpuFault : public std::exception {
 public:
  GpuFault(uint64_t address, Access access, bool present)
      : address_(address), access_(access), present_(present) {}
  [[nodiscard]] const char* what() const noexcept override { return "GPU memory access fault"; }
  [[nodiscard]] uint64_t address() const { return address_; }
  [[nodiscard]] Access access() const { return access_; }
  [[nodiscard]] bool present() const { return present_; }

 private:
  uint64_t address_;
  Access access_;
  bool present_;
};

struct Mapping {
  std::byte* host = nullptr;  // where this process reaches the same bytes
  bool writable = true;

  [[nodiscard]] Mapping later(uint64_t bytes) const { return {host + bytes, writable}; }
};

class PageTable {
 public:
  explicit PageTable(const BackingStore& store) : store_(store) {}

  void map(uint64_t address, uint64_t bytes, Mapping mapping);
  void unmap(uint64_t address, uint64_t bytes);

  // The host's pointer to a range that one mapping holds or several that continue each other; throws
  // GpuFault.
  [[nodiscard]] std::byte* at(uint64_t address, uint64_t bytes, Access access) const;
  void read(uint64_t address, void* to, uint64_t bytes) const;
  void write(uint64_t address, const void* from, uint64_t bytes) const;
  // As memmove; holes of sparse memory stay holes.
  void copy(uint64_t to, uint64_t from, uint64_t bytes) const;
  void fill(uint64_t address, uint32_t value, uint64_t words) const;

  struct Mapped {
    uint64_t begin, end;
    Mapping mapping;
  };
  // All of it, in order; neighbours that continue each other are one.
  [[nodiscard]] std::vector<Mapped> mapped() const;

  template <typename T>
  [[nodiscard]] T* object(uint64_t address, Access access = Access::kWrite) const {
    return reinterpret_cast<T*>(at(address, sizeof(T), access));
  }

 private:
  struct Piece {
    std::byte* host;
    uint64_t bytes;
  };
  [[nodiscard]] std::vector<Piece> pieces(uint64_t address, uint64_t bytes, Access access) const;
  void move_piece(std::byte* to, const std::byte* from, uint64_t bytes) const;

  const BackingStore& store_;
  mutable std::shared_mutex mutex_;
  IntervalMap<Mapping> mappings_;
};

}  // namespace softkfd
