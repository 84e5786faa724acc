#include "queue/log.h"

#include <fcntl.h>
#include <sysexits.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace softkfd {

Log::Log(const std::string& file)
    : file_(file.empty() ? -1 : ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file.empty() && file_ < 0) throw std::system_error(errno, std::generic_category(), file);
}

void Log::line(const std::string& text) const {
  if (file_ < 0) return;
  const std::string whole = text + "\n";
  const ssize_t written = write(file_, whole.data(), whole.size());
  if (std::cmp_equal(written, whole.size())) return;
  // A log that lacks something would be read as if that had never been done.
  const int why = written < 0 ? errno : ENOSPC;
  const std::string said = "softkfd: its log can't be written: " + std::generic_category().message(why) + "\n";
  static_cast<void>(write(STDERR_FILENO, said.data(), said.size()) < 0);
  _exit(EX_IOERR);
}

void Log::done_line(const std::string& text) const {
  line(text);
  ++done_;
}

}  // namespace softkfd
