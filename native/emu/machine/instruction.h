// One decoded instruction: what the execution functions read.
#pragma once

#include <array>
#include <cstdint>

namespace rpl_emu {

struct Wave;
struct Instruction;
using Execute = void (*)(Wave&, const Instruction&);

constexpr unsigned kLanes = 64;

enum class Place : uint8_t { none, vector, scalar, constant, scc, off };

// A source or destination. `index` counts rows of the vector register file, or scalar registers.
struct Operand {
  Place place = Place::none;
  uint8_t words = 1;
  uint16_t index = 0;
  const uint32_t* rows = nullptr;  // of a constant: its value for 64 lanes, low words before high words
  uint64_t value = 0;
};

// What a source goes through before, and a result after, the operation itself.
struct SourceChange {
  char type = 0;  // as in the row's signature; 0: nothing to be done
  bool negate = false, absolute = false, sign_extend = false;
  uint8_t select = 6;  // SDWA: 0-3 a byte, 4-5 a half, 6 all
  bool high_half = false;
  bool negate_high = false;
  bool from_high = false, high_from_high = true;  // packed: op_sel and op_sel_hi
  bool packed = false;
};

struct Changes {
  Execute inner = nullptr;
  const Instruction* plain = nullptr;  // the operation on temporary rows
  std::array<SourceChange, 3> source{};
  bool dpp = false, dpp_bound_ctrl = false, dpp_whole_row_mask = true;
  uint16_t dpp_control = 0;
  uint8_t dpp_rows = 15, dpp_banks = 15;
  char result_type = 0;
  bool clamp = false;
  uint8_t result_select = 6;
  uint8_t result_unused = 0;  // 0 zeros, 1 sign, 2 the old bits stay
  bool result_high_half = false, keep_other_half = false;
  bool result_is_mask = false;
  bool flush = false;  // denormals by the mode register
  char round = 0;      // the result's type, where the mode register may ask for another rounding than to the nearest
};

struct Row;

// Straight runs (`mark_straight_runs`) lead from an instruction to the next that may jump, stop, or read the clock.
struct Instruction {
  Execute run = nullptr;
  uint32_t left = 1;    // instructions of the straight run from here on, this and its last one too
  uint8_t size = 1;     // in words
  uint8_t step = 1;     // words to the next instruction of the run that does something
  bool last = true;     // of its straight run
  std::array<Operand, 2> to{};
  std::array<Operand, 4> from{};
  int64_t offset = 0;
  int32_t target = 0;   // of branches: in words of code, relative to the start
  uint32_t flags = 0;   // the meaning belongs to the row's group
  uint16_t extra = 0;
  const Changes* changes = nullptr;
  const Row* row = nullptr;
};

}  // namespace rpl_emu
