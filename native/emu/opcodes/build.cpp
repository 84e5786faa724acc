// One build of the lane functions for one instruction set of the CPU, as a library that is loaded at run time.
#include <bit>

#include "machine/shadow.h"
#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

// One instruction after the other, up to `budget`; gives how many. `Watched`: --sanitize looks at each before it runs.
template <bool Watched>
uint64_t run_each(Wave& w, Count* counts, uint64_t budget) {
  uint64_t done = 0;
  while (done < budget) {
    const uint64_t at = w.pc;
    const Instruction& i = w.code[at];
    count_run(counts, at, at, static_cast<uint64_t>(std::popcount(w.exec())));
    w.pc = at + i.size;
    ++done;
    ++w.clock;
    if constexpr (Watched) w.group->shadow->execute(w, i);
    i.run(w, i);
    if (w.stop != Stop::none) [[unlikely]] {
      if (w.stop >= Stop::fault) w.pc = at;
      break;
    }
  }
  return done;
}

// The same by straight runs: what is counted, and where the wave is, is written down once for a run. It ends early where
// EXEC changes, since lanes are counted, and where something stops the wave.
uint64_t run_wave(Wave& w, Count* counts, uint64_t budget) {
  if (w.group->shadow) return run_each<true>(w, counts, budget);
  const Instruction* const code = w.code;
  uint64_t done = 0;
  while (done < budget) {
    const Instruction* const first = code + w.pc;
    if (first->left > budget - done) return done + run_each<false>(w, counts, budget - done);
    const uint64_t exec = w.exec();
    const Instruction* i = first;
    bool straight = !i->last;
    while (straight) {
      i->run(w, *i);
      if (w.exec() != exec || w.stop != Stop::none) [[unlikely]] break;
      i += i->step;
      straight = !i->last;
    }
    const auto at = static_cast<uint64_t>(i - code);
    const uint64_t instructions = first->left - i->left + 1;
    count_run(counts, static_cast<uint64_t>(first - code), at, static_cast<uint64_t>(std::popcount(exec)));
    done += instructions;
    w.clock += instructions;
    w.pc = at + i->size;
    if (!straight) i->run(w, *i);
    if (w.stop != Stop::none) [[unlikely]] {
      if (w.stop >= Stop::fault) w.pc = at;
      break;
    }
  }
  return done;
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
  out->round_halves = &round_halves;
}
