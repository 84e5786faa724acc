#include "replay/plan.h"

#include <cstdlib>
#include <fstream>

#include "loader/code_object.h"

namespace rpl_emu {
namespace {

using Fields = std::vector<std::string>;

Fields split(const std::string& line) {
  Fields out;
  size_t begin = 0;
  for (size_t tab = line.find('\t'); tab != std::string::npos; tab = line.find('\t', begin)) {
    out.push_back(line.substr(begin, tab - begin));
    begin = tab + 1;
  }
  out.push_back(line.substr(begin));
  return out;
}

uint64_t number(const std::string& text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != 0) throw BadFile("the plan of the replay has no number where one is needed: " + text);
  return value;
}

void take(ReplayPlan& plan, const Fields& f) {
  const auto has = [&](const char* name, size_t count) { return f[0] == name && f.size() == count + 1; };
  const auto small = [&](size_t k) { return static_cast<uint32_t>(number(f[k])); };
  if (has("kernel", 1)) {
    plan.kernel = f[1];
  } else if (has("grid", 3)) {
    plan.grid = {small(1), small(2), small(3)};
  } else if (has("block", 3)) {
    plan.block = {small(1), small(2), small(3)};
  } else if (has("lds", 1)) {
    plan.lds = small(1);
  } else if (has("scratch", 1)) {
    plan.scratch = small(1);
  } else if (has("kernarg", 2)) {
    plan.kernarg_at = number(f[1]);
    plan.kernarg = f[2];
  } else if (has("code", 2) || has("pinned", 2)) {
    plan.pinned = f[0] == "pinned";
    plan.code_at = number(f[1]);
    plan.code = f[2];
  } else if (has("region", 3)) {
    plan.regions.push_back({number(f[1]), number(f[2]), f[3]});
  } else if (has("variable", 3)) {
    plan.variables.push_back({f[2], number(f[1]), f[3]});
  } else {
    throw BadFile("a line of the replay's plan that is not understood: " + f[0]);
  }
}

}  // namespace

ReplayPlan read_plan(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadFile("cannot read " + path);
  ReplayPlan plan;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) take(plan, split(line));
  return plan;
}

}  // namespace rpl_emu
