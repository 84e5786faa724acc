// From bytes to instructions that run: text by the disassembler, the row of the table by the mnemonic.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <string_view>
#include <vector>

#include "decode/disassembler.h"
#include "decode/text.h"
#include "machine/instruction.h"
#include "opcodes/table.h"

namespace rpl_emu {

// The rows of every group, by name.
class OpcodeTable {
 public:
  explicit OpcodeTable(const RowLists& lanes);
  [[nodiscard]] const Row* find(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, const Row*>& rows() const { return rows_; }
  [[nodiscard]] Execute modified() const { return modified_; }

 private:
  std::map<std::string, const Row*> rows_;
  Execute modified_;
};

// What the registers of a kernel are.
struct RegisterFile {
  unsigned vectors = 512;       // rows of both kinds together
  unsigned accumulator_at = 256;  // the row of a0
  bool flush_float = false;     // denormals of floats, or of halves and doubles, by the mode register
  bool may_flush = false;
  bool may_round = false;  // otherwise than to the nearest
  bool dx10_clamp = true;
};

// Code of one code object: all words, those that were decoded with something to run.
struct Program {
  uint64_t begin = 0;  // address of the first word
  std::vector<Instruction> code;
  std::deque<std::array<uint32_t, size_t{2} * kLanes>> constants;
  std::unordered_map<uint64_t, const uint32_t*> rows_of;  // of each constant
  std::deque<Changes> changes;
  std::deque<Instruction> plain;
  std::map<uint64_t, std::string> texts;  // by word
  bool sets_mode = false, sets_rounding = false;  // some instruction writes such bits of MODE
  std::map<uint64_t, std::string> refused;  // by word: what is not offered, which `not_offered` stands for, and why
};

// Sets what `Instruction` says of straight runs. An instruction that was not looked at is a run of its own.
void mark_straight_runs(Program& program);

class Decoder {
 public:
  Decoder(const InstructionTexts& texts, const OpcodeTable& table, bool strict = false) : texts_(texts), table_(table), strict_(strict) {}

  // Decodes words [first, last) of `bytes`. What is not offered is left out and noted; if it is `reached` for certain,
  // a strict decoder throws Unavailable that names it, and where.
  void decode(Program& program, std::span<const uint8_t> bytes, size_t first, size_t last, const RegisterFile& file, bool reached = true) const;
  // The launch ends where it reaches word `at`.
  static void leave_out(Program& program, size_t at, const std::string& why);
  // One instruction at word `at`.
  void decode_one(Program& program, std::span<const uint8_t> bytes, size_t at, const RegisterFile& file) const;

 private:
  const InstructionTexts& texts_;
  const OpcodeTable& table_;
  bool strict_;
};

}  // namespace rpl_emu
