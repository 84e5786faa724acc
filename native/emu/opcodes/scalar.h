// The groups of opcodes without lanes: one build serves every CPU.
#pragma once

#include "machine/wave.h"
#include "opcodes/table.h"

namespace rpl_emu {

RowList scalar_rows();
RowList scalar_memory_rows();
RowList program_rows();

// Between S_SET_GPR_IDX_ON and OFF: `extra` says which operands move, `offset` where registers end.
void run_indexed(Wave& w, const Instruction& i);

template <class T>
inline T scalar_get(const Wave& w, const Operand& from) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(w.scalar64(from));
  else return static_cast<T>(w.scalar(from));
}
template <class T>
inline void scalar_put(Wave& w, const Operand& to, T value) {
  if constexpr (sizeof(T) == 8) w.set64(to.index, static_cast<uint64_t>(value));
  else w.s[to.index] = static_cast<uint32_t>(value);
}

}  // namespace rpl_emu
