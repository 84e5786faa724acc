#include "model/bound.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "model/device.h"

namespace rpl_emu {
namespace {

void add_up(Modelled& m, const Program& program, const LaunchResult& result) {
  for (size_t k = 0; k < result.counts.size(); ++k) {
    const Row* row = program.code[k].row;
    if (!row || result.counts[k].executed == 0) continue;
    const Issue issue = issue_of(*row);
    if (issue.unit != Unit::none) m.passes[static_cast<size_t>(issue.unit)] += result.counts[k].executed * issue.passes;
    const MemoryCount& memory = result.memory[k];
    if (row->form == Form::lds) {
      m.lds_bytes += memory.bytes;
      m.lds_passes_beyond += memory.conflicts;
    } else if (issue.unit == Unit::memory) {
      m.bytes += memory.bytes;
      m.lines_64b += memory.lines64;
      m.lines_128b += memory.lines128;
    }
  }
}

void bound_by_traffic(Modelled& m, const Traffic& t) {
  const auto l2 = 128 * t.l2_reads_128 + 64 * (t.l2_reads_64 + t.l2_writes_64 + t.l2_atomics_64);
  m.bounds.push_back({"l2", static_cast<double>(l2) / kL2BytesPerClock / kModelClockGhz});
  m.bounds.push_back({"infinity_cache", static_cast<double>(128 * t.fabric_reads_128 + 64 * t.fabric_writes_64) / kInfinityBytesPerNs});
  m.bounds.push_back({"hbm", static_cast<double>(128 * t.hbm_reads_128 + 64 * t.hbm_writes_64) / kHbmBytesPerNs});
}

}  // namespace

Modelled model_launch(const Program& program, const LaunchResult& result) {
  Modelled m;
  add_up(m, program, result);
  const uint64_t units = std::clamp<uint64_t>(result.groups, 1, kModelUnits);
  m.simds = std::clamp<uint64_t>(result.waves, 1, units * kModelSimds);
  for (unsigned k = 0; k < kUnits; ++k) {
    const double cycles = static_cast<double>(m.passes[k]) * kModelCyclesPerPass / static_cast<double>(m.simds);
    m.issue_cycles_per_simd = std::max(m.issue_cycles_per_simd, cycles);
    m.bounds.push_back({std::string("issue.") + kUnitNames[k], cycles / kModelClockGhz});
  }
  const auto lds = (static_cast<double>(m.lds_bytes) / kLdsBytesPerClock + static_cast<double>(m.lds_passes_beyond)) / static_cast<double>(units);
  m.bounds.push_back({"lds", lds / kModelClockGhz});
  m.bounds.push_back({"l1", 128.0 * static_cast<double>(m.lines_128b) / kL1BytesPerClock / static_cast<double>(units) / kModelClockGhz});
  m.touched = result.touched;
  m.traffic = result.traffic;
  if (m.traffic) bound_by_traffic(m, *m.traffic);
  else m.bounds.push_back({"hbm", static_cast<double>(128 * m.touched.read_lines_128 + 64 * m.touched.written_parts_64) / kHbmBytesPerNs});
  std::ranges::stable_sort(m.bounds, std::ranges::greater{}, &Bound::ns);
  m.bound_ns = m.bounds.front().ns;
  m.bound_by = m.bounds.front().by;
  return m;
}

}  // namespace rpl_emu
