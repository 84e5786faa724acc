// The metadata of a code object is MessagePack: a reader of the parts that it uses.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rpl_emu {

struct Packed {
  enum class Kind : uint8_t { nothing, boolean, number, text, list, map };
  Kind kind = Kind::nothing;
  uint64_t number = 0;
  std::string text;
  std::vector<Packed> list;
  std::map<std::string, Packed> map;

  // An empty value if it has no such entry.
  [[nodiscard]] const Packed& operator[](const std::string& key) const;
};

// Throws BadFile.
[[nodiscard]] Packed read_message_pack(std::span<const uint8_t> bytes);

}  // namespace rpl_emu
