// The bytes of a region, part by part; holes of the file are known to be zeros.
#pragma once

#include <span>
#include <string>

namespace rpl::replay {

class ContentFile {
 public:
  // Throws Failure of kind copy_failed, here and below.
  explicit ContentFile(const std::string& file);
  ~ContentFile();
  ContentFile(const ContentFile&) = delete;
  ContentFile& operator=(const ContentFile&) = delete;

  // The bytes at `offset`; what lies behind the end of the file is zeros. False: all of it is a hole, and
  // `to` was not touched.
  bool read(uint64_t offset, std::span<std::byte> to);

 private:
  std::string name_;
  int file_;
  // Where data begin at the earliest, as far as it was asked.
  uint64_t data_ = 0;
  uint64_t asked_ = UINT64_MAX;
};

}  // namespace rpl::replay
