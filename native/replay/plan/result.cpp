#include "plan/result.h"

#include <sysexits.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace rpl::replay {
namespace {

using nlohmann::json;

json text(const std::string& value) { return value.empty() ? json(nullptr) : json(value); }

template <typename T>
json maybe(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json changes_of(const std::vector<VariableChange>& variables) {
  json list = json::array();
  for (const VariableChange& one : variables) {
    list.push_back({{"name", one.name}, {"changed", one.changed}, {"address", maybe(one.address)}});
  }
  return list;
}

json failure_of(const std::optional<Failure>& failure) {
  if (!failure) return nullptr;
  return {{"kind", failure->kind},
          {"fact", failure->what()},
          {"cause", text(failure->cause)},
          {"next_step", text(failure->next)},
          {"address", maybe(failure->address)}};
}

}  // namespace

bool Result::write(const std::string& file) const {
  json document = {
      {"environment",
       {{"device", text(device)},
        {"product", text(product)},
        {"isa", text(isa)},
        {"runtime", text(runtime)},
        {"runtime_version", text(runtime_version)},
        {"interface_version", text(interface_version)},
        {"pid", getpid()}}},
      {"software_kfd", software_kfd},
      {"attempts", attempts},
      {"warm_up_ns", warm_up_ns},
      {"times_ns", times_ns},
      {"other_times_ns", other_times_ns},
      {"flushed_bytes", flushed_bytes},
      {"restored_bytes", maybe(restored_bytes)},
      {"notes", notes},
      {"failure", failure_of(failure)},
      {"reservations", json::array()},
      {"variables", changes_of(variables)},
      {"other_variables", changes_of(other_variables)},
  };
  for (const Reserved& one : reservations) {
    document["reservations"].push_back({{"requested", one.requested.address},
                                        {"size", one.requested.size},
                                        {"returned", maybe(one.returned)}});
  }
  const std::string unfinished = file + ".part";
  std::ofstream stream(unfinished, std::ios::binary);
  stream << document.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  stream.close();
  return stream.good() && std::rename(unfinished.c_str(), file.c_str()) == 0;
}

int Result::exit_code() const {
  constexpr int kTimeLimit = 124;
  static const std::map<std::string_view, int> codes = {
      {"reserve_failed", 1},
      {"map_failed", 1},
      {"copy_failed", 1},
      {"relocated", 3},
      {"layout_clash", 3},
      {"gpu_fault", 4},
      {"isa_mismatch", 5},
      {"no_virtual_memory", 6},
      {"no_runtime", EX_UNAVAILABLE},
      {"no_device", EX_UNAVAILABLE},
      {"unsupported", EX_UNAVAILABLE},
      {"bad_code", EX_DATAERR},
      {"undecidable", EX_TEMPFAIL},
      {"time_limit", kTimeLimit},
  };
  if (!failure) return 0;
  const auto found = codes.find(failure->kind);
  return found == codes.end() ? EX_SOFTWARE : found->second;
}

}  // namespace rpl::replay
