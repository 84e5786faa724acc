// What the GPU did, a line each, for those who test: SOFTKFD_LOG=FILE.
#pragma once

#include <string>

namespace softkfd {

class Log {
 public:
  Log() = default;
  explicit Log(const std::string& file);
  // Whole lines, also when several processes write.
  void line(const std::string& text) const;

 private:
  int file_ = -1;
};

}  // namespace softkfd
