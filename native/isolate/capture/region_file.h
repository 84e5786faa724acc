// The bytes of one region on disk: zeros are holes, or all of it is compressed.
#pragma once

#include <memory>
#include <string>

#include "capture/settings.h"
#include "code/elf.h"

namespace rpl::isolate {

class RegionFile {
 public:
  virtual ~RegionFile() = default;
  // In order. False: it could not be written, errno says why.
  virtual bool append(Bytes bytes) = 0;
  // Bytes that the file takes.
  virtual bool finish(uint64_t& stored) = 0;

  // `name` without the suffix of a compression. nullptr: it could not be made, errno says why.
  static std::unique_ptr<RegionFile> create(const std::string& name, Compression compression);
};

// Whether this build can compress.
bool can_compress();

// Whether the number of an error says that there is no space left, for all or for this user.
bool is_full(int error);

// A whole small file, replaced atomically. False: errno says why.
bool write_file(const std::string& name, Bytes bytes);
bool write_file(const std::string& name, const std::string& text);

}  // namespace rpl::isolate
