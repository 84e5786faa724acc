#include "queue/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace softkfd {

Log::Log(const std::string& file)
    : file_(file.empty() ? -1 : ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file.empty() && file_ < 0) throw std::system_error(errno, std::generic_category(), file);
}

void Log::line(const std::string& text) const {
  if (file_ < 0) return;
  const std::string whole = text + "\n";
  [[maybe_unused]] const ssize_t written = write(file_, whole.data(), whole.size());
}

void Log::done_line(const std::string& text) const {
  line(text);
  ++done_;
}

}  // namespace softkfd
