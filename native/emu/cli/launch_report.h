// What launches print: counts, findings, how a kernel ended.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cli/counts_json.h"
#include "cli/json.h"
#include "machine/launch.h"
#include "sanitize/findings.h"

namespace rpl_emu {

// "X[,Y[,Z]]", each at least 1.
[[nodiscard]] std::array<uint32_t, 3> parse_sizes(const std::string& text, const std::string& what);
// An empty name: the only kernel there is.
[[nodiscard]] const Kernel& find_kernel(const CodeObject& object, const std::string& name);

void write_findings(Json& json, const std::vector<Finding>& findings, const Program& program, const LoadedObject& object);
[[nodiscard]] const char* name_of(Outcome o);
[[nodiscard]] int status_of(const LaunchResult& r, const std::vector<Finding>& findings);

// To stderr, one line each.
void describe_stop(const LaunchResult& r, const Program& program, const LoadedObject& object);
void describe_findings(const std::vector<Finding>& findings, const Program& program, const LoadedObject& object);

}  // namespace rpl_emu
