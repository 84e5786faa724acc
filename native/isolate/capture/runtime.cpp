#include "capture/runtime.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace rpl::isolate {
namespace {

template <typename T>
T agent_info(const hsa::ApiTables& api, hsa::Agent agent, uint32_t what) {
  T value{};
  if (api.original(hsa::core::kAgentGetInfo)(agent, what, &value) != hsa::kSuccess) return T{};
  return value;
}

std::string agent_text(const hsa::ApiTables& api, hsa::Agent agent, uint32_t what) {
  const auto text = agent_info<std::array<char, 64>>(api, agent, what);
  return {text.data(), strnlen(text.data(), text.size())};
}

std::string isa_of(const hsa::ApiTables& api, hsa::Agent agent) {
  struct Search {
    const hsa::ApiTables* api;
    std::string name;
  } search{&api, {}};
  api.original(hsa::core::kAgentIterateIsas)(
      agent,
      [](hsa::Isa isa, void* data) {
        auto& found = *static_cast<Search*>(data);
        uint32_t length = 0;
        const auto get = found.api->original(hsa::core::kIsaGetInfo);
        if (!found.name.empty() || get(isa, hsa::kIsaNameLength, &length) != hsa::kSuccess)
          return hsa::kSuccess;
        std::string name(length, '\0');
        get(isa, hsa::kIsaName, name.data());
        found.name = name.substr(0, name.find('\0'));  // the length counts the final zero
        return hsa::kSuccess;
      },
      &search);
  return search.name;
}

std::string bdf_of(uint32_t domain, uint32_t bdf) {
  std::array<char, 32> text{};
  // NOLINTNEXTLINE(cert-err33-c): there is room
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, (bdf >> 8) & 0xff, (bdf >> 3) & 0x1f,
                bdf & 7);
  return text.data();
}

struct Agents {
  const hsa::ApiTables* api;
  std::vector<AgentDescription> found;
  uint32_t gpus = 0;

  void add(hsa::Agent agent) {
    AgentDescription one;
    one.agent = agent;
    one.device = agent_info<uint32_t>(*api, agent, hsa::kAgentDevice);
    one.name = agent_text(*api, agent, hsa::kAgentName);
    one.product = agent_text(*api, agent, hsa::kAgentProductName);
    one.uuid = agent_text(*api, agent, hsa::kAgentUuid);
    one.node = agent_info<uint32_t>(*api, agent, hsa::kAgentDriverNode);
    one.compute_units = agent_info<uint32_t>(*api, agent, hsa::kAgentComputeUnits);
    one.bdf = bdf_of(agent_info<uint32_t>(*api, agent, hsa::kAgentDomain),
                     agent_info<uint32_t>(*api, agent, hsa::kAgentBdf));
    if (one.device == hsa::kDeviceGpu) {
      one.number = gpus++;
      one.isa = isa_of(*api, agent);
      one.wavefront_size = agent_info<uint32_t>(*api, agent, hsa::kAgentWavefrontSize);
    }
    found.push_back(std::move(one));
  }
};

}  // namespace

std::vector<std::string> AgentDescription::features() const {
  std::vector<std::string> found;
  for (size_t at = isa.find(':'); at != std::string::npos;) {
    const size_t next = isa.find(':', at + 1);
    found.push_back(isa.substr(at + 1, next == std::string::npos ? next : next - at - 1));
    at = next;
  }
  return found;
}

std::vector<AgentDescription> describe_agents(const hsa::ApiTables& api) {
  Agents agents{&api, {}};
  api.original(hsa::core::kIterateAgents)(
      [](hsa::Agent agent, void* data) {
        static_cast<Agents*>(data)->add(agent);
        return hsa::kSuccess;
      },
      &agents);
  return agents.found;
}

std::string library_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

TimedSignal::TimedSignal(const hsa::ApiTables& api, int64_t initial) : api_(api) {
  if (api.original(hsa::core::kSignalCreate)(initial, 0, nullptr, &signal_) != hsa::kSuccess) signal_ = {};
}

TimedSignal::~TimedSignal() {
  if (is_valid() && !pending_) api_.original(hsa::core::kSignalDestroy)(signal_);
}

bool TimedSignal::wait_until(std::chrono::steady_clock::time_point deadline, int64_t below) {
  uint64_t hertz = 0;
  api_.original(hsa::core::kSystemGetInfo)(hsa::kSystemTimestampFrequency, &hertz);
  const auto wait = api_.original(hsa::core::kSignalWait);
  constexpr uint64_t kSlicesPerSecond = 10;
  do {
    pending_ =
        wait(signal_, hsa::kConditionLess, below, hertz / kSlicesPerSecond, hsa::kWaitBlocked) >= below;
  } while (pending_ && std::chrono::steady_clock::now() < deadline);
  return !pending_;
}

void TimedSignal::take_back() {
  api_.original(hsa::core::kSignalStoreRelease)(signal_, 0);
  pending_ = false;
}

void TimedSignal::set_again() { api_.original(hsa::core::kSignalStoreRelease)(signal_, 1); }

}  // namespace rpl::isolate
