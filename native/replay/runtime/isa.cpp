#include "runtime/isa.h"

#include <map>

namespace rpl::replay {
namespace {

struct Target {
  std::string_view processor;
  std::map<std::string_view, char> features;
};

Target target_of(std::string_view name) {
  const size_t dash = name.rfind('-', name.find(':'));
  // "gfx9-4-generic" has dashes of its own, which follow the two before the processor.
  const size_t twice = name.find("--");
  if (twice != std::string_view::npos) {
    name.remove_prefix(twice + 2);
  } else if (dash != std::string_view::npos) {
    name.remove_prefix(dash + 1);
  }
  Target target;
  size_t colon = name.find(':');
  target.processor = name.substr(0, colon);
  while (colon != std::string_view::npos) {
    name.remove_prefix(colon + 1);
    colon = name.find(':');
    const std::string_view feature = name.substr(0, colon);
    if (!feature.empty()) target.features[feature.substr(0, feature.size() - 1)] = feature.back();
  }
  return target;
}

}  // namespace

std::string isa_difference(std::string_view code, std::string_view gpu) {
  const Target wanted = target_of(code);
  const Target given = target_of(gpu);
  if (wanted.processor != given.processor) {
    return "the code is for " + std::string(wanted.processor) + ", the GPU is " +
           std::string(given.processor);
  }
  for (const auto& [feature, sign] : wanted.features) {
    const auto found = given.features.find(feature);
    if (found == given.features.end() || found->second != sign) {
      const std::string has = found == given.features.end() ? "not" : std::string(feature) + found->second;
      return "the code needs " + std::string(feature) + sign + ", the GPU has " + has;
    }
  }
  return "";
}

}  // namespace rpl::replay
