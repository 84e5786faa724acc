// JSON as it is written to files: names that are no valid UTF-8 must not stop a capture.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rpl::isolate {

inline std::string text_of(const nlohmann::json& document) {
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace rpl::isolate
