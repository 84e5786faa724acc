// Why a replay ends early: the kinds of docs/REPLAY.md and one line for people.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace rpl::replay {

struct Failure : std::runtime_error {
  Failure(std::string kind_, const std::string& fact, std::string cause_ = "", std::string next_ = "",
          std::optional<uint64_t> address_ = std::nullopt)
      : std::runtime_error(fact),
        kind(std::move(kind_)),
        cause(std::move(cause_)),
        next(std::move(next_)),
        address(address_) {}

  std::string kind, cause, next;
  std::optional<uint64_t> address;
};

}  // namespace rpl::replay
