// What in a wave's registers came from registers that nobody wrote. Moving and computing with such garbage is
// usual in compiled code; what counts is where it takes effect: in an address, in memory, in EXEC, in a branch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/wave.h"

namespace rpl_emu {

// Garbage that takes effect.
struct UnwrittenUse {
  uint64_t read_pc = 0;  // where the register that nobody wrote was read first
  unsigned lane = 0;
  unsigned index = 0;    // the register whose value took effect
  bool scalar = false;
};

class RegisterShadow {
 public:
  // `scalars`: those that the launch has set.
  void start(const Wave& w, uint32_t rows, const std::array<bool, kScalars>& scalars);
  // Before an instruction runs.
  void execute(const Wave& w, const Instruction& i, std::vector<UnwrittenUse>& found);

 private:
  static constexpr uint64_t kNowhere = ~uint64_t{0};
  // Bits of a scalar, lanes of a vector register, that are known.
  struct Register {
    uint64_t known = 0;
    uint64_t origin = kNowhere;  // of what is not known
  };
  std::vector<Register> rows_;
  std::array<Register, kScalars> scalars_{};
  Register scc_{1, kNowhere};
  std::vector<UnwrittenUse>* found_ = nullptr;
  uint64_t pc_ = 0;

  void scalar(const Wave& w, const Instruction& i);
  void vector(const Wave& w, const Instruction& i);
  void memory(const Wave& w, const Instruction& i);
  void lanes_of(const Wave& w, const Instruction& i);
  void branch(const Instruction& i);
  void check_exec();

  [[nodiscard]] Register word_of(const Operand& from, unsigned word) const;
  [[nodiscard]] Register pair_of(const Operand& from) const;
  [[nodiscard]] Register lanes_read(const Operand& from, unsigned word, bool mask) const;
  void set_scalar(const Operand& to, const Register& value);
  void set_lanes(const Operand& to, unsigned word, uint64_t lanes, const Register& value);
  void all_known(const Operand& to, uint64_t lanes);
  void uses(const Operand& from, uint64_t lanes);
};

}  // namespace rpl_emu
