#include "cli/launch_report.h"

#include <cinttypes>
#include <cstdio>
#include <map>

#include "cli/commands.h"

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

std::string position(const Program& program, const LoadedObject& object, uint64_t word) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, program.begin - object.base() + 4 * word);
  const auto found = program.texts.find(word);
  std::string line = found == program.texts.end() ? "" : found->second;
  line.erase(0, line.find_first_not_of(" \t"));
  return std::string(text) + (line.empty() ? "" : " (" + line + ")");
}

}  // namespace

std::array<uint32_t, 3> parse_sizes(const std::string& text, const std::string& what) {
  std::array<uint32_t, 3> out{1, 1, 1};
  size_t begin = 0;
  for (unsigned k = 0; k < 3 && begin <= text.size(); ++k) {
    const size_t comma = text.find(',', begin);
    const auto n = parse_number(text.substr(begin, comma - begin), what);
    if (n == 0 || n > 0xffffffffULL) throw UsageError(std::string(what).append(" must be at least 1 and below 2^32: ").append(text));
    out[k] = static_cast<uint32_t>(n);
    if (comma == std::string::npos) return out;
    begin = comma + 1;
  }
  if (begin <= text.size()) throw UsageError(what + " has at most three parts: " + text);
  return out;
}

void write_counts(Json& json, const Program& program, const LoadedObject& object, const LaunchResult& r, bool by_place) {
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
    json.open('{').key("at").hex(program.begin - object.base() + 4 * k).key("opcode").string(program.code[k].row->name);
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
  if (m.traffic) write_traffic(json, *m.traffic);
  else json.key("traffic").null().key("traffic_reason").string("caches are modelled with --model-caches only");
  json.close('}');
}

void write_findings(Json& json, const std::vector<Finding>& findings, const Program& program, const LoadedObject& object) {
  json.key("findings").open('[');
  for (const Finding& f : findings) {
    json.open('{').key("kind").string(f.kind).key("at").string(position(program, object, f.pc)).key("other").string(position(program, object, f.other_pc));
    json.key("group").open('[').number(f.group[0]).number(f.group[1]).number(f.group[2]).close(']');
    json.key("wave").number(f.wave).key("other_wave").number(f.other_wave).key("lane").number(f.lane).key("address").hex(f.address).key("times").number(f.times).close('}');
  }
  json.close(']');
}

const Kernel& find_kernel(const CodeObject& object, const std::string& name) {
  if (name.empty() && object.kernels.size() == 1) return object.kernels.begin()->second;
  const auto found = object.kernels.find(name);
  if (found != object.kernels.end()) return found->second;
  std::string known;
  for (const auto& [other, kernel] : object.kernels) if (known.size() < 400) known += (known.empty() ? "" : ", ") + other;
  throw UsageError((name.empty() ? std::string("--kernel is needed") : "no kernel " + name) + ". The code object has: " + known);
}

int status_of(const LaunchResult& r, const std::vector<Finding>& findings) {
  if (r.outcome == Outcome::fault || r.outcome == Outcome::trap) return kMemoryFault;
  if (r.outcome == Outcome::limit) return kLimit;
  return findings.empty() ? kOk : kFinding;
}

const char* name_of(Outcome o) {
  switch (o) {
    case Outcome::ended: return "ended";
    case Outcome::fault: return "memory_fault";
    case Outcome::limit: return "limit";
    case Outcome::trap: return "trap";
  }
  return "";
}

void describe_stop(const LaunchResult& r, const Program& program, const LoadedObject& object) {
  if (r.outcome == Outcome::ended) return;
  std::fprintf(stderr, "rpl-emu: %s", printable(r.reason).c_str());
  if (r.outcome == Outcome::fault) std::fprintf(stderr, ": address 0x%llx, lane %u", static_cast<unsigned long long>(r.address), r.lane);
  std::fprintf(stderr, ", workgroup (%u, %u, %u), wave %u, at %s\n", r.where.group[0], r.where.group[1], r.where.group[2], r.where.wave, printable(position(program, object, r.where.pc)).c_str());
}
void describe_findings(const std::vector<Finding>& findings, const Program& program, const LoadedObject& object) {
  for (const Finding& f : findings)
    std::fprintf(stderr, "rpl-emu: %s: at %s and %s, workgroup (%u, %u, %u), waves %u and %u, address 0x%llx, %llu times\n", f.kind.c_str(), printable(position(program, object, f.pc)).c_str(),
                 printable(position(program, object, f.other_pc)).c_str(), f.group[0], f.group[1], f.group[2], f.wave, f.other_wave, static_cast<unsigned long long>(f.address), static_cast<unsigned long long>(f.times));
}

}  // namespace rpl_emu
