#include "cli/counts_json.h"

#include <map>
#include <string>

#include "model/bound.h"
#include "model/device.h"

namespace rpl_emu {
namespace {

void write_traffic(Json& json, const Traffic& t) {
  json.key("traffic").open('{');
  json.key("l1").open('{').key("lines_128b_read").number(t.l1_reads).key("hits").number(t.l1_hits).close('}');
  json.key("scalar_cache").open('{').key("lines_64b_read").number(t.scalar_reads).key("hits").number(t.scalar_hits).close('}');
  json.key("l2").open('{').key("reads_128b").number(t.l2_reads_128).key("reads_64b").number(t.l2_reads_64).key("writes_64b").number(t.l2_writes_64);
  json.key("atomics_64b").number(t.l2_atomics_64).key("hits").number(t.l2_hits).key("misses").number(t.l2_misses).close('}');
  json.key("fabric").open('{').key("reads_128b").number(t.fabric_reads_128).key("writes_64b").number(t.fabric_writes_64).key("infinity_cache_hits").number(t.infinity_hits).close('}');
  json.key("hbm").open('{').key("reads_128b").number(t.hbm_reads_128).key("writes_64b").number(t.hbm_writes_64).close('}');
  json.close('}');
}

}  // namespace

void write_counts(Json& json, const Program& program, uint64_t base, const LaunchResult& r, bool by_place) {
  struct Sum { uint64_t executed = 0, lanes = 0; MemoryCount memory; };
  std::map<std::string, Sum> classes, names;
  uint64_t instructions = 0;
  for (size_t k = 0; k < r.counts.size(); ++k) {
    const Row* row = program.code[k].row;
    if (!row || r.counts[k].executed == 0) continue;
    instructions += r.counts[k].executed;
    for (Sum* sum : {&classes[row->counter], &names[row->name]}) {
      sum->executed += r.counts[k].executed;
      sum->lanes += r.counts[k].lanes;
      sum->memory.bytes += r.memory[k].bytes;
      sum->memory.lines64 += r.memory[k].lines64;
      sum->memory.lines128 += r.memory[k].lines128;
      sum->memory.conflicts += r.memory[k].conflicts;
    }
  }
  json.key("instructions").number(instructions);
  const auto table = [&](const char* title, const std::map<std::string, Sum>& sums) {
    json.key(title).open('{');
    for (const auto& [name, s] : sums) {
      json.key(name).open('{').key("executed").number(s.executed).key("lanes").number(s.lanes);
      if (s.memory.bytes) json.key("bytes").number(s.memory.bytes);
      if (s.memory.lines64) json.key("lines_64b").number(s.memory.lines64).key("lines_128b").number(s.memory.lines128);
      if (s.memory.conflicts) json.key("bank_conflict_passes").number(s.memory.conflicts);
      json.close('}');
    }
    json.close('}');
  };
  table("classes", classes);
  table("opcodes", names);
  json.key("not_to_the_bit").open('[');
  for (const auto& [name, s] : names) {
    for (const Instruction& i : program.code)
      if (i.row && name == i.row->name) {
        if (*i.row->note) json.open('{').key("opcode").string(name).key("why").string(i.row->note).close('}');
        break;
      }
  }
  json.close(']');
  if (!by_place) return;
  json.key("places").open('[');
  for (size_t k = 0; k < r.counts.size(); ++k) {
    if (!program.code[k].row || r.counts[k].executed == 0) continue;
    json.open('{').key("at").hex(program.begin - base + 4 * k).key("opcode").string(program.code[k].row->name);
    json.key("executed").number(r.counts[k].executed).key("lanes").number(r.counts[k].lanes).close('}');
  }
  json.close(']');
}

// How to read it: docs/EMULATOR.md, "Modelled".
void write_modelled(Json& json, const Program& program, const LaunchResult& r, const Limits& limits) {
  if (!limits.count_memory) {
    json.key("modelled").null().key("modelled_reason").string("it needs the counters of memory, which were left out");
    return;
  }
  const Modelled m = model_launch(program, r);
  json.key("modelled").open('{').key("device").string(kModelledDevice).key("bound_ns").real(m.bound_ns).key("bound_by").string(m.bound_by);
  json.key("bounds_ns").open('{');
  for (const Bound& b : m.bounds) json.key(b.by).real(b.ns);
  json.close('}').key("issue_passes").open('{');
  for (unsigned k = 0; k < kUnits; ++k) json.key(kUnitNames[k]).number(m.passes[k]);
  json.close('}').key("simds").number(m.simds).key("issue_cycles_per_simd").real(m.issue_cycles_per_simd);
  json.key("bytes").number(m.bytes).key("lines_64b").number(m.lines_64b).key("lines_128b").number(m.lines_128b);
  json.key("distinct").open('{').key("lines_128b_read").number(m.touched.read_lines_128).key("lines_64b_written").number(m.touched.written_parts_64).close('}');
  if (m.traffic) write_traffic(json, *m.traffic);
  else json.key("traffic").null().key("traffic_reason").string("caches are modelled with --model-caches only");
  json.close('}');
}

}  // namespace rpl_emu
