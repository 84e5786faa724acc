#include "capture/settings.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace rpl::isolate {
namespace {

class Reader {
 public:
  Reader(const std::function<const char*(const char*)>& value_of, std::string& error)
      : value_of_(value_of), error_(error) {}

  std::string text(const char* name) const {
    const char* const value = value_of_(name);
    return value == nullptr ? "" : value;
  }
  int64_t number(const char* name, int64_t otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    int64_t found = 0;
    const char* const end = value.data() + value.size();
    const auto result = std::from_chars(value.data(), end, found);
    if (result.ec == std::errc() && result.ptr == end && found >= 0) return found;
    refuse(name, value);
    return otherwise;
  }
  std::chrono::milliseconds seconds(const char* name, std::chrono::milliseconds otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    double found = 0;
    const char* const end = value.data() + value.size();
    const auto result = std::from_chars(value.data(), end, found);
    constexpr double kLongest = 1e9;
    constexpr double kMilliseconds = 1e3;
    if (result.ec == std::errc() && result.ptr == end && found >= 0 && found <= kLongest) {
      return std::chrono::milliseconds(static_cast<int64_t>(found * kMilliseconds));
    }
    refuse(name, value);
    return otherwise;
  }
  // `names` in the order of the enumeration.
  template <typename T>
  void choose(const char* name, const auto& names, T& chosen) const {
    const std::string value = text(name);
    if (value.empty()) return;
    const auto found = std::ranges::find(names, value);
    if (found == names.end()) {
      refuse(name, value);
    } else {
      chosen = static_cast<T>(found - names.begin());
    }
  }

 private:
  void refuse(const char* name, const std::string& value) const {
    error_ = std::string(name) + "='" + value + "' can't be used";
  }

  const std::function<const char*(const char*)>& value_of_;
  std::string& error_;
};

}  // namespace

Settings Settings::from(const std::function<const char*(const char*)>& value_of, int64_t pid,
                        bool leads_session) {
  Settings found;
  const Reader read(value_of, found.error);
  found.output = read.text("RPL_ISOLATE_OUTPUT");
  const bool is_the_program =
      read.text("RPL_ISOLATE_PID") == "session" ? leads_session : read.number("RPL_ISOLATE_PID", pid) == pid;
  if (!found.output.empty() && !is_the_program) found.output += "_" + std::to_string(pid);
  found.status = read.text("RPL_ISOLATE_STATUS");
  found.log = read.text("RPL_ISOLATE_LOG");
  found.kernel = read.text("RPL_ISOLATE_KERNEL");
  found.dispatch = static_cast<uint64_t>(read.number("RPL_ISOLATE_DISPATCH", 0));
  read.choose("RPL_ISOLATE_REGIONS", kModeNames, found.mode);
  read.choose("RPL_ISOLATE_POST", kPostNames, found.post);
  read.choose("RPL_ISOLATE_HASH", kHashNames, found.hash);
  read.choose("RPL_ISOLATE_COMPRESS", kCompressionNames, found.compression);
  found.drain_limit = read.seconds("RPL_ISOLATE_DRAIN_TIMEOUT_S", found.drain_limit);
  found.kernel_limit = read.seconds("RPL_ISOLATE_KERNEL_TIMEOUT_S", found.kernel_limit);
  found.low_addresses = read.text("HSA_RESERVE_SVM") == "1";
  return found;
}

}  // namespace rpl::isolate
