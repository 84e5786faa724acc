#include "memory/content_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "plan/failure.h"

namespace rpl::replay {

ContentFile::ContentFile(const std::string& file)
    : name_(file), file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) {
    throw Failure("copy_failed", file + " can't be read", std::generic_category().message(errno));
  }
}

ContentFile::~ContentFile() { close(file_); }

bool ContentFile::read(uint64_t offset, std::span<std::byte> to) {
  if (asked_ > offset || data_ < offset) {  // nothing is known yet of what lies from `offset` on
    const off_t data = lseek(file_, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno != ENXIO) {
      data_ = offset;  // this file system knows no holes
    } else {
      data_ = data < 0 ? UINT64_MAX : static_cast<uint64_t>(data);
    }
    asked_ = offset;
  }
  if (data_ >= offset + to.size()) return false;
  size_t filled = 0;
  while (filled < to.size()) {
    const ssize_t count =
        pread(file_, to.data() + filled, to.size() - filled, static_cast<off_t>(offset + filled));
    if (count < 0) {
      throw Failure("copy_failed", name_ + " can't be read", std::generic_category().message(errno));
    }
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  std::ranges::fill(to.subspan(filled), std::byte{0});
  return true;
}

}  // namespace rpl::replay
