// What the GPU did, a line each, for those who test: SOFTKFD_LOG=FILE.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace softkfd {

class Log {
 public:
  Log() = default;
  // Without a name nothing is written.
  explicit Log(const std::string& file);
  // Whole lines, also when several processes write.
  void line(const std::string& text) const;
  [[nodiscard]] bool open() const { return file_ >= 0; }
  // How many lines of launches and barriers this process has written.
  [[nodiscard]] uint64_t done() const { return done_; }
  // A line of one of these.
  void done_line(const std::string& text) const;

 private:
  mutable std::atomic<uint64_t> done_ = 0;
  int file_ = -1;
};

}  // namespace softkfd
