// Bytes of an open file, while they are looked at.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include "code/elf.h"

namespace rpl::isolate {

class MappedFile {
 public:
  // The whole file.
  explicit MappedFile(int file) {
    struct stat status{};
    if (fstat(file, &status) == 0) map(file, 0, static_cast<size_t>(status.st_size));
  }
  // `offset` is that of a page.
  MappedFile(int file, off_t offset, size_t size) { map(file, offset, size); }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Empty when it could not be mapped.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  void map(int file, off_t offset, size_t size) {
    if (size == 0) return;
    const void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, offset);
    if (mapped != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(mapped), size};
  }

  Bytes bytes_;
};

}  // namespace rpl::isolate
