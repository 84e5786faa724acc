#include "decode/text.h"

#include <cctype>
#include <cstdlib>

#include "machine/memory.h"
#include "machine/wave.h"

namespace rpl_emu {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// At commas, or at spaces, that stand in no brackets.
std::vector<std::string_view> split(std::string_view text, bool at_spaces) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t k = 0; k <= text.size(); ++k) {
    const char c = k < text.size() ? text[k] : (at_spaces ? ' ' : ',');
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    const bool here = k == text.size() || (depth == 0 && (at_spaces ? c == ' ' || c == '\t' : c == ','));
    if (!here) continue;
    const std::string_view part = trimmed(text.substr(begin, k - begin));
    if (!part.empty()) parts.push_back(part);
    begin = k + 1;
  }
  return parts;
}

struct Named { const char* name; unsigned index, words; };
constexpr Named kNamed[] = {
    {"vcc", kVcc, 2}, {"vcc_lo", kVcc, 1}, {"vcc_hi", kVcc + 1, 1}, {"exec", kExec, 2}, {"exec_lo", kExec, 1},
    {"exec_hi", kExec + 1, 1}, {"m0", kM0, 1}, {"flat_scratch", kFlatScratch, 2}, {"flat_scratch_lo", kFlatScratch, 1},
    {"flat_scratch_hi", kFlatScratch + 1, 1}, {"xnack_mask", kXnack, 2}, {"xnack_mask_lo", kXnack, 1},
    {"xnack_mask_hi", kXnack + 1, 1}};

// "12" or "[1:2]" after the letter.
bool parse_register(std::string_view text, TextOperand& to) {
  const std::string rest(text);
  char* end = nullptr;
  if (!rest.empty() && rest[0] == '[') {
    const unsigned long first = std::strtoul(rest.c_str() + 1, &end, 10);
    if (end == rest.c_str() + 1) return false;
    unsigned long last = first;
    if (*end == ':') {
      const char* begin = end + 1;
      last = std::strtoul(begin, &end, 10);
      if (end == begin) return false;
    }
    if (std::string_view(end) != "]" || last < first || last > 1023) return false;
    to.index = static_cast<unsigned>(first);
    to.words = static_cast<unsigned>(last - first + 1);
    return true;
  }
  if (rest.empty() || !std::isdigit(static_cast<unsigned char>(rest[0]))) return false;
  to.index = static_cast<unsigned>(std::strtoul(rest.c_str(), &end, 10));
  to.words = 1;
  return *end == 0 && to.index < 1024;
}

bool parse_number(const std::string& text, TextOperand& to) {
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) || (text[0] == '-' && text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[1])))))
    return false;
  char* end = nullptr;
  const bool real = text.find('.') != std::string::npos;
  if (real) to.real = std::strtod(text.c_str(), &end);
  else to.integer = text[0] == '-' ? static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 0)) : std::strtoull(text.c_str(), &end, 0);
  if (*end != 0) return false;  // LLVM writes "-12/*Invalid immediate*/"
  to.kind = real ? TextOperand::Kind::real : TextOperand::Kind::integer;
  to.hexadecimal = !real && text.find('x') != std::string::npos;
  return true;
}

bool unwrap(std::string& text, std::string_view before, std::string_view after) {
  if (text.size() < before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) return false;
  text = text.substr(before.size(), text.size() - before.size() - after.size());
  return true;
}

void parse_plain(const std::string& text, TextOperand& to) {
  using Kind = TextOperand::Kind;
  if (parse_number(text, to)) return;
  if (text == "off") { to.kind = Kind::off; return; }
  if (text == "src_scc") { to.kind = Kind::scc; return; }
  for (const auto& [name, value] : {std::pair{"src_shared_base", kSharedBase}, {"src_private_base", kPrivateBase}})
    if (text == name) { to.kind = Kind::aperture; to.integer = value; to.words = 2; return; }
  for (const Named& named : kNamed)
    if (text == named.name) { to.kind = Kind::scalar; to.index = named.index; to.words = named.words; return; }
  if (text.starts_with("ttmp")) {
    if (parse_register(std::string_view(text).substr(4), to)) {
      to.kind = Kind::scalar;
      to.index += kTrapTemporaries;
    }
    return;
  }
  if (text.empty() || !parse_register(std::string_view(text).substr(1), to)) return;
  if (text[0] == 'v') to.kind = Kind::vector;
  else if (text[0] == 'a') to.kind = Kind::accumulator;
  else if (text[0] == 's') to.kind = Kind::scalar;
}

TextOperand parse_operand(std::string_view text) {
  TextOperand operand;
  operand.text = text;
  std::string rest(text);
  // A literal that could also be written as an inline constant.
  if (unwrap(rest, "lit(", ")") || unwrap(rest, "lit64(", ")")) operand.text = rest;
  TextOperand number;
  if (!parse_number(rest, number)) {
    if (unwrap(rest, "neg(", ")")) operand.negate = true;
    else if (rest.size() > 1 && rest[0] == '-') {
      operand.negate = true;
      rest = rest.substr(1);
    }
    if (unwrap(rest, "|", "|") || unwrap(rest, "abs(", ")")) operand.absolute = true;
    if (unwrap(rest, "sext(", ")")) operand.sign_extend = true;
  }
  parse_plain(rest, operand);
  return operand;
}

}  // namespace

std::optional<std::string> InstructionText::modifier(std::string_view name) const {
  for (const std::string& m : modifiers) {
    if (m == name) return "";
    if (m.size() > name.size() && m.starts_with(name) && m[name.size()] == ':') return m.substr(name.size() + 1);
  }
  return std::nullopt;
}

InstructionText parse_instruction(std::string_view line) {
  InstructionText out;
  line = trimmed(line);
  const size_t space = line.find_first_of(" \t");
  out.mnemonic = std::string(line.substr(0, space));
  if (space == std::string_view::npos) return out;
  for (const std::string_view part : split(line.substr(space), false)) {
    const auto words = split(part, true);
    bool first = true;
    for (const std::string_view word : words) {
      const bool register_like = word.find(':') == std::string_view::npos || word.find('[') == 1;
      const bool sum = word.find('|') != std::string_view::npos || word.starts_with("-");
      if (first && out.modifiers.empty() && (register_like || sum || word.starts_with("ttmp[") || word.starts_with("sext"))) out.operands.push_back(parse_operand(word));
      else out.modifiers.emplace_back(word);
      first = false;
    }
  }
  return out;
}

std::vector<unsigned> parse_list(std::string_view text) {
  std::vector<unsigned> out;
  unsigned value = 0;
  bool digits = false;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      value = value * 10 + static_cast<unsigned>(c - '0');
      digits = true;
    } else if (digits) {
      out.push_back(value);
      value = 0;
      digits = false;
    }
  }
  if (digits) out.push_back(value);
  return out;
}

}  // namespace rpl_emu
