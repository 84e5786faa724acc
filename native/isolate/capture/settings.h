// What the launcher asks for: environment variables (docs/REPLAY.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "capture/layout.h"

namespace rpl::isolate {

struct Settings {
  std::string output;  // empty: nothing is captured
  std::string status;  // empty: no status files
  std::string log;
  std::string kernel;
  uint64_t dispatch = 0;
  Mode mode = Mode::kFull;
  Post post = Post::kHashes;
  Hash hash = Hash::kXxh3;
  Compression compression = Compression::kNone;
  std::chrono::milliseconds drain_limit{30'000};
  std::chrono::milliseconds kernel_limit{60'000};
  bool low_addresses = false;
  // A value that can't be used; nothing is captured then.
  std::string error;

  // `value_of(name)` is nullptr for a variable that is not set; `leads_session`: this process began its
  // session.
  static Settings from(const std::function<const char*(const char*)>& value_of, int64_t pid,
                       bool leads_session);
};

}  // namespace rpl::isolate
