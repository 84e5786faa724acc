// One build of the lane functions for one instruction set of the CPU, as a library that is loaded at run time.
#include <bit>

#include "machine/shadow.h"
#include "opcodes/lanes.h"
#include "opcodes/lists.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// Runs up to `budget` instructions; gives how many. `Watched`: --sanitize looks at each before it runs.
template <bool Watched>
uint64_t run_instructions(Wave& w, Count* counts, uint64_t budget) {
  const Instruction* code = w.code;
  uint64_t done = 0;
  while (done < budget) {
    const uint64_t at = w.pc;
    const Instruction& i = code[at];
    ++counts[at].executed;
    counts[at].lanes += static_cast<uint64_t>(std::popcount(w.exec()));
    w.pc = at + i.size;
    ++done;
    ++w.clock;
    if constexpr (Watched) w.group->shadow->execute(w, i);
    i.run(w, i);
    if (w.stop != Stop::none) [[unlikely]] {
      if (w.stop == Stop::fault || w.stop == Stop::trap) w.pc = at;
      break;
    }
  }
  return done;
}
uint64_t run_wave(Wave& w, Count* counts, uint64_t budget) {
  return w.group->shadow ? run_instructions<true>(w, counts, budget) : run_instructions<false>(w, counts, budget);
}

}  // namespace
}  // namespace rpl_emu::inline RPL_EMU_BUILD

extern "C" __attribute__((visibility("default"))) void rpl_emu_lanes(rpl_emu::RowLists* out) {
  using namespace rpl_emu;
  static const RowList kLists[] = {vector_integer_rows(), vector_16_rows(), vector_float_rows(), vector_double_rows(),
                                   convert_rows(), compare_rows(), packed_rows(), matrix_rows(), lds_rows(),
                                   global_rows(), buffer_rows()};
  out->first = kLists;
  out->count = sizeof kLists / sizeof *kLists;
  out->modified = run_modified;
  out->run_wave = run_wave;
}
