#include "cli/launch_report.h"

#include <cinttypes>
#include <cstdio>

#include "cli/commands.h"

namespace rpl_emu {
namespace {

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
  if (r.outcome == Outcome::unsupported) return kUnavailable;
  return findings.empty() ? kOk : kFinding;
}

const char* name_of(Outcome o) {
  switch (o) {
    case Outcome::ended: return "ended";
    case Outcome::fault: return "memory_fault";
    case Outcome::limit: return "limit";
    case Outcome::trap: return "trap";
    case Outcome::unsupported: return "not_offered";
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
