#include "capture/settings.h"

#include <charconv>
#include <cstring>
#include <map>

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
  template <typename T>
  T choice(const char* name, const std::map<std::string, T>& choices, T otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    if (const auto found = choices.find(value); found != choices.end()) return found->second;
    refuse(name, value);
    return otherwise;
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
  found.regions = read.choice<Regions>(
      "RPL_ISOLATE_REGIONS", {{"full", Regions::kFull}, {"referenced", Regions::kReferenced}}, found.regions);
  found.post = read.choice<Post>("RPL_ISOLATE_POST",
                                 {{"hashes", Post::kHashes}, {"bytes", Post::kBytes}, {"none", Post::kNone}},
                                 found.post);
  found.hash =
      read.choice<Hash>("RPL_ISOLATE_HASH", {{"xxh3", Hash::kXxh3}, {"none", Hash::kNone}}, found.hash);
  found.compression = read.choice<Compression>("RPL_ISOLATE_COMPRESS",
                                               {{"none", Compression::kNone}, {"zstd", Compression::kZstd}},
                                               found.compression);
  found.drain_limit = read.seconds("RPL_ISOLATE_DRAIN_TIMEOUT_S", found.drain_limit);
  found.kernel_limit = read.seconds("RPL_ISOLATE_KERNEL_TIMEOUT_S", found.kernel_limit);
  found.low_addresses = read.text("HSA_RESERVE_SVM") == "1";
  return found;
}

}  // namespace rpl::isolate
