#include "runtime/gpus.h"

#include <array>

#include "plan/failure.h"
#include "runtime/isa.h"

namespace rpl::replay {
namespace {

struct IsaNames {
  const HsaLibrary& hsa;
  std::vector<std::string> names;
};

hsa::Status add_isa(hsa::Isa isa, void* data) {
  auto& found = *static_cast<IsaNames*>(data);
  uint32_t length = 0;
  if (found.hsa.isa_get_info_alt(isa, hsa::kIsaNameLength, &length) != hsa::kSuccess) return hsa::kSuccess;
  std::string name(length, '\0');
  if (found.hsa.isa_get_info_alt(isa, hsa::kIsaName, name.data()) == hsa::kSuccess) {
    found.names.emplace_back(name.c_str());
  }
  return hsa::kSuccess;
}

struct PoolSearch {
  const HsaLibrary& hsa;
  uint32_t flag;
  hsa::Pool found;
};

hsa::Status look_at_pool(hsa::Pool pool, void* data) {
  auto& search = *static_cast<PoolSearch*>(data);
  uint32_t segment = 0;
  uint32_t flags = 0;
  if (search.hsa.pool_get_info(pool, hsa::kPoolSegment, &segment) != hsa::kSuccess || segment != 0 ||
      search.hsa.pool_get_info(pool, hsa::kPoolFlags, &flags) != hsa::kSuccess) {
    return hsa::kSuccess;
  }
  if ((flags & search.flag) != 0 && search.found.handle == 0) search.found = pool;
  return hsa::kSuccess;
}

std::string text_of(const HsaLibrary& hsa, hsa::Agent agent, uint32_t what) {
  std::array<char, 128> text{};
  return hsa.agent_get_info(agent, what, text.data()) == hsa::kSuccess ? text.data() : "";
}

}  // namespace

Gpus::Gpus(const HsaLibrary& hsa) : hsa_(hsa) {
  hsa_.require(hsa_.iterate_agents(
                   [](hsa::Agent agent, void* data) {
                     static_cast<Gpus*>(data)->add(agent);
                     return hsa::kSuccess;
                   },
                   this),
               "no_device", "the runtime does not name its devices");
  if (gpus_.empty()) throw Failure("no_device", "the runtime sees no GPU", "", "rpl doctor");
}

void Gpus::add(hsa::Agent agent) {
  uint32_t type = 0;
  hsa_.require(hsa_.agent_get_info(agent, hsa::kAgentDevice, &type), "no_device",
               "the runtime does not describe its devices");
  if (type == hsa::kDeviceCpu && cpu_.handle == 0) {
    cpu_ = agent;
    host_pool_ = pool_of(agent, hsa::kPoolKernarg);
  } else if (type == hsa::kDeviceGpu) {
    IsaNames isas{hsa_, {}};
    hsa_.agent_iterate_isas(agent, add_isa, &isas);
    gpus_.push_back({agent, pool_of(agent, hsa::kPoolCoarseGrained), std::move(isas.names)});
  }
}

hsa::Pool Gpus::pool_of(hsa::Agent agent, uint32_t flag) const {
  PoolSearch search{hsa_, flag, {}};
  hsa_.iterate_pools(agent, look_at_pool, &search);
  return search.found;
}

std::string Gpus::difference(uint32_t number, const std::string& isa) const {
  std::string first = "the runtime names no instruction set of the GPU";
  for (size_t i = 0; i < gpus_[number].isas.size(); ++i) {
    std::string one = isa_difference(isa, gpus_[number].isas[i]);
    if (one.empty()) return "";
    if (i == 0) first = std::move(one);
  }
  return first;
}

uint32_t Gpus::choose(const Plan& plan) const {
  // What the capture says, its code, and what takes its place: all of them fit the GPU, or nothing runs.
  const std::array<std::pair<const char*, std::string>, 4> parts = {
      {{"the launch was on another GPU: ", plan.isa},
       {"the captured code: ", plan.captured_isa},
       {"", plan.kernel.isa},
       {"", plan.other ? plan.other->isa : ""}}};
  const auto problem_of = [&](uint32_t number) {
    for (const auto& [what, isa] : parts) {
      const std::string problem = isa.empty() ? "" : difference(number, isa);
      if (!problem.empty()) return what + problem;
    }
    return std::string();
  };
  const uint32_t own = plan.gpu < size() ? plan.gpu : 0;
  const std::string problem = problem_of(own);
  if (problem.empty()) return own;
  for (uint32_t number = 0; number < size(); ++number) {
    if (problem_of(number).empty()) return number;
  }
  throw Failure("isa_mismatch", problem, "the capture is of another kind of GPU",
                "replay it on a GPU of its kind");
}

void Gpus::describe(uint32_t number, Result& result) const {
  const Gpu& gpu = gpus_[number];
  result.device = text_of(hsa_, gpu.agent, hsa::kAgentName);
  result.product = text_of(hsa_, gpu.agent, hsa::kAgentProductName);
  if (!gpu.isas.empty()) result.isa = gpu.isas.front();
  result.runtime = hsa_.path;
  std::array<uint16_t, 2> version{};
  hsa_.system_get_info(hsa::kSystemVersionMajor, version.data());
  hsa_.system_get_info(hsa::kSystemVersionMinor, &version[1]);
  result.interface_version = std::to_string(version[0]) + "." + std::to_string(version[1]);
  const char* build = nullptr;
  if (hsa_.system_get_info(hsa::kSystemBuildVersion, static_cast<void*>(&build)) == hsa::kSuccess &&
      build != nullptr) {
    result.runtime_version = build;
    std::erase(result.runtime_version, '"');  // some builds have them in it
  }
}

uint64_t Gpus::bytes_that_flush(uint32_t number) const {
  constexpr uint32_t kCacheSizes = 0x12;       // HSA_AGENT_INFO_CACHE_SIZE, of the levels 1 to 4
  constexpr uint64_t kUnknown = 512ULL << 20;  // twice the largest cache of a CDNA 3 GPU
  std::array<uint32_t, 4> sizes{};
  if (hsa_.agent_get_info(gpus_[number].agent, kCacheSizes, sizes.data()) != hsa::kSuccess) return kUnknown;
  uint64_t all = 0;
  for (const uint32_t size : sizes) all += size;
  return all == 0 ? kUnknown : 2 * all;
}

std::vector<hsa::Agent> Gpus::agents() const {
  std::vector<hsa::Agent> agents;
  agents.reserve(gpus_.size());
  for (const Gpu& gpu : gpus_) agents.push_back(gpu.agent);
  return agents;
}

}  // namespace rpl::replay
