// The one table of opcodes. A row drives decoding, execution, counters and documentation of an opcode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/instruction.h"

// Each build for an instruction set of the CPU has its own copy of everything inline.
#ifndef RPL_EMU_BUILD
#define RPL_EMU_BUILD baseline
#endif

namespace rpl_emu {

using i32 = int32_t;
using i64 = int64_t;
using u32 = uint32_t;
using u64 = uint64_t;

struct Count;

// What waits and hints do: runs leave such instructions out, and still count them.
void nothing(Wave& w, const Instruction& i);
// Stands where an instruction is not offered: `Program::refused` says why.
void not_offered(Wave& w, const Instruction& i);

// How the operands of an opcode are written and read.
enum class Form : uint8_t {
  scalar,      // SOP1, SOP2, SOPC, SOPK
  program,     // SOPP and what else has a meaning of its own
  scalar_memory,
  vector,      // VOP1, VOP2, VOP3, VOPC and their DPP and SDWA forms
  packed,      // VOP3P
  matrix,      // MFMA and SMFMAC
  accumulator, // v_accvgpr_*
  lds,
  global,      // GLOBAL, FLAT and SCRATCH
  buffer,
};

// Signature: destinations, ":", sources; a letter is an operand's type.
//   u 32 bits   f float    h half in the low 16 bits   w 16-bit integer   b boolean per lane (a scalar pair)
//   U 64 bits   I signed 64 bits   F double   q two halves   k two 16-bit integers   P two floats
//   V 128 bits
//   s a scalar register   S a pair of them   n the immediate
//   g a vector register and the offset of DS   - an operand that is not written in the text
struct Row {
  const char* name;       // without the encoding's suffix
  Form form;
  const char* signature;
  const char* counter;    // class of the instruction for counters, such as "valu.fma.f32"
  Execute run;
  const char* note;       // how exact, where that is not "to the bit"; else empty
  bool reads_clock = false;
};

struct RowList {
  const Row* first;
  size_t count;
};

// What a build for one instruction set of the CPU offers.
struct RowLists {
  const RowList* first;
  size_t count;
  Execute modified;       // runs an instruction with modifiers
  uint64_t (*run_wave)(Wave&, Count*, uint64_t budget);
  bool* round_halves;     // of this build; set before a launch
};

constexpr const char* kApproximate = "hardware bits are not public: correctly rounded here";

}  // namespace rpl_emu
