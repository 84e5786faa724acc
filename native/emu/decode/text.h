// The text of one instruction, in parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rpl_emu {

struct TextOperand {
  enum class Kind : uint8_t { vector, accumulator, scalar, integer, real, off, scc, aperture, other };
  Kind kind = Kind::other;
  unsigned index = 0;
  unsigned words = 1;
  uint64_t integer = 0;
  double real = 0;
  bool negate = false, absolute = false, sign_extend = false;
  bool hexadecimal = false;
  std::string text;
};

struct InstructionText {
  std::string mnemonic;
  std::vector<TextOperand> operands;
  std::vector<std::string> modifiers;

  // What stands behind "name:", or nothing; "" of a bare word.
  [[nodiscard]] std::optional<std::string> modifier(std::string_view name) const;
};

[[nodiscard]] InstructionText parse_instruction(std::string_view line);
// "[0,1,1]"
[[nodiscard]] std::vector<unsigned> parse_list(std::string_view text);

}  // namespace rpl_emu
