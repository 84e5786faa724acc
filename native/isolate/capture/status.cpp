#include "capture/status.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "capture/json_text.h"
#include "capture/region_file.h"

namespace rpl::isolate {
namespace {

void append(const std::string& file, const std::string& text) {
  constexpr mode_t kMode = 0666;
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (opened < 0) return;
  // One call: lines of several threads and processes don't mix.
  static_cast<void>(write(opened, text.data(), text.size()) < 0);
  close(opened);
}

}  // namespace

Status::Status(const Settings& settings) : log_(settings.log), output_(settings.output) {
  if (settings.status.empty()) return;
  const std::string stem = settings.status + "/" + std::to_string(getpid());
  file_ = stem + ".json";
  kernels_ = stem + ".kernels";
}

void Status::set(const std::string& state, const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  state_ = state;
  reason_ = reason;
  write();
}

void Status::set_full(const std::string& reason, uint64_t needed, uint64_t free) {
  needed_ = needed;
  free_ = free;
  set("failed", reason);
}

void Status::end() {
  const std::scoped_lock lock(mutex_);
  if (state_ == "loaded") state_ = "ended";
  write();
}

void Status::write() {
  if (file_.empty()) return;
  const nlohmann::json text = {
      {"schema_version", "1.0"},
      {"pid", getpid()},
      {"state", state_},
      {"reason", reason_.empty() ? nlohmann::json() : nlohmann::json(reason_)},
      {"output", output_.empty() ? nlohmann::json() : nlohmann::json(output_)},
      {"matches", matches.load()},
      {"launches", launches.load()},
      {"needed_bytes", needed_ ? nlohmann::json(*needed_) : nlohmann::json()},
      {"free_bytes", free_ ? nlohmann::json(*free_) : nlohmann::json()},
  };
  write_file(file_, text_of(text));
}

void Status::saw_kernel(const std::string& name, const std::string& readable) {
  if (!kernels_.empty()) append(kernels_, name + "\t" + readable + "\n");
}

void Status::log(const std::string& message) const {
  if (!log_.empty()) append(log_, "rpl-isolate " + std::to_string(getpid()) + ": " + message + "\n");
}

}  // namespace rpl::isolate
