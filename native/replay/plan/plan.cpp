#include "plan/plan.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace rpl::replay {
namespace {

using nlohmann::json;

template <typename T>
std::optional<T> maybe(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

Range range_of(const json& object) {
  return {object.at("address").get<uint64_t>(), object.at("size").get<uint64_t>()};
}

std::vector<Range> ranges_of(const json& list) {
  std::vector<Range> ranges;
  for (const json& one : list) ranges.push_back(range_of(one));
  return ranges;
}

std::vector<Content> contents_of(const json& list) {
  std::vector<Content> contents;
  for (const json& one : list) {
    contents.push_back({range_of(one), one.at("file").get<std::string>(), one.value("gpu", 0U)});
  }
  return contents;
}

Kernel kernel_of(const json& object) {
  Kernel kernel;
  kernel.name = object.at("name").get<std::string>();
  kernel.code_object = object.at("code_object").get<std::string>();
  kernel.isa = object.at("isa").get<std::string>();
  kernel.captured_code = object.at("captured_code").get<bool>();
  kernel.grid = object.at("grid").get<std::array<uint32_t, 3>>();
  kernel.workgroup = object.at("workgroup").get<std::array<uint16_t, 3>>();
  kernel.setup = object.at("setup").get<uint16_t>();
  kernel.group_bytes = object.at("group_bytes").get<uint32_t>();
  kernel.private_bytes = object.at("private_bytes").get<uint32_t>();
  kernel.dynamic_group_bytes = maybe<uint32_t>(object, "dynamic_group_bytes");
  kernel.kernarg_file = object.at("kernarg_file").get<std::string>();
  kernel.kernarg_bytes = object.at("kernarg_bytes").get<uint64_t>();
  kernel.kernarg_address = maybe<uint64_t>(object, "kernarg_address");
  return kernel;
}

std::vector<Variable> variables_of(const json& list) {
  std::vector<Variable> variables;
  for (const json& one : list) {
    variables.push_back({one.at("name").get<std::string>(), one.at("size").get<uint64_t>(),
                         one.at("file").get<std::string>(), maybe<uint64_t>(one, "address")});
  }
  return variables;
}

}  // namespace

Plan Plan::read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const json object = json::parse(stream);
  Plan plan;
  plan.isa = object.value("isa", "");
  plan.captured_isa = object.value("captured_isa", "");
  plan.gpu = object.value("gpu", 0U);
  if (const auto ranges = object.find("reserve"); ranges != object.end()) {
    plan.reserve_only = true;
    plan.ranges = ranges_of(*ranges);
    return plan;
  }
  plan.iterations = object.at("iterations").get<uint32_t>();
  plan.warm_ups = object.at("warm_ups").get<uint32_t>();
  plan.recopy = object.at("recopy").get<bool>();
  plan.time_limit_ns = maybe<uint64_t>(object, "time_limit_ns");
  plan.deadline_ns = maybe<uint64_t>(object, "deadline_ns");
  plan.cold_caches = object.value("cold_caches", false);
  plan.kernel = kernel_of(object.at("kernel"));
  if (const auto place = object.find("code_place"); place != object.end() && !place->is_null()) {
    plan.code_place = {range_of(*place), place->at("kernel_object").get<uint64_t>(),
                       place->at("pointers").get<std::string>()};
  }
  if (const auto other = object.find("other"); other != object.end() && !other->is_null()) {
    plan.other = kernel_of(*other);
    plan.other_first = object.at("other_first").get<std::vector<bool>>();
    if (plan.other_first.size() != plan.iterations || !plan.recopy) {
      throw std::invalid_argument("pairs of launches that nobody ordered");
    }
  }
  plan.regions = contents_of(object.at("regions"));
  plan.edits = contents_of(object.at("edits"));
  plan.variables = variables_of(object.at("variables"));
  plan.keep = ranges_of(object.at("keep"));
  plan.hash_folder = object.at("hash_folder").get<std::string>();
  plan.keep_file = object.at("keep_file").get<std::string>();
  plan.keep_other_file = object.value("keep_other_file", "");
  plan.variables_file = object.value("variables_file", "");
  plan.variables_other_file = object.value("variables_other_file", "");
  return plan;
}

}  // namespace rpl::replay
