#include "memory/backing_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace softkfd {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

BackingStore::BackingStore(uint64_t bytes) : bytes_(up(bytes, kPage)) {
  file_ = memfd_create("softkfd", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    throw std::system_error(errno, std::generic_category(), "memory file of the software KFD");
  }
  void* view = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (view == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "the GPU's view of its memory");
  }
  view_ = static_cast<std::byte*>(view);
  free_.emplace(0, bytes_);
}

BackingStore::~BackingStore() {
  munmap(view_, bytes_);
  close(file_);
}

bool BackingStore::holds(const std::byte* pointer) const {
  return pointer >= view_ && pointer < view_ + bytes_;
}

std::optional<uint64_t> BackingStore::allocate(uint64_t bytes, uint64_t alignment) {
  const std::scoped_lock lock(mutex_);
  return take(up(bytes, kPage), std::max(alignment, kPage));
}

std::optional<uint64_t> BackingStore::take(uint64_t bytes, uint64_t alignment) {
  const auto fits = [&](const auto& part) {
    const uint64_t lost = up(part.first, alignment) - part.first;
    return lost <= part.second && part.second - lost >= bytes;
  };
  const auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) return std::nullopt;
  const auto [offset, room] = *found;
  free_.erase(found);
  const uint64_t begin = up(offset, alignment);
  const uint64_t end = begin + bytes;
  if (begin > offset) free_.emplace(offset, begin - offset);
  if (end < offset + room) free_.emplace(end, offset + room - end);
  return begin;
}

void BackingStore::release(uint64_t offset, uint64_t bytes) {
  bytes = up(bytes, kPage);
  zero(offset, bytes);
  const std::scoped_lock lock(mutex_);
  auto after = free_.lower_bound(offset);
  if (after != free_.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(offset, bytes);
}

BackingStore::Extent BackingStore::extent(uint64_t offset, uint64_t bytes) const {
  const std::scoped_lock lock(known_mutex_);
  if (known_begin_ <= offset && offset < known_end_) return {std::min(bytes, known_end_ - offset), false};
  const off_t data = lseek(file_, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return {bytes, true};  // ENXIO: nothing but holes up to the end of the file
  const auto begin = static_cast<uint64_t>(data);
  if (begin > offset) return {std::min(bytes, begin - offset), true};
  const auto end = static_cast<uint64_t>(lseek(file_, static_cast<off_t>(offset), SEEK_HOLE));
  known_begin_ = begin;
  known_end_ = end;
  return {std::min(bytes, end - offset), false};
}

void BackingStore::zero(uint64_t offset, uint64_t bytes) const {
  const std::scoped_lock lock(known_mutex_);
  known_begin_ = known_end_ = 0;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

uint64_t BackingStore::resident_bytes() const {
  struct stat status{};
  fstat(file_, &status);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

}  // namespace softkfd
