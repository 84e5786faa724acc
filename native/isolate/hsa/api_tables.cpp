#include "hsa/api_tables.h"

#include <algorithm>

namespace rpl::hsa {
namespace {

std::string refusal(const char* name, const TableVersion& version, size_t needed) {
  const std::string told = std::string(name) + " table " + std::to_string(version.major) + "." +
                           std::to_string(version.minor) + "." + std::to_string(version.step);
  if (version.major != kKnownMajor) {
    return told + " is not of major version " + std::to_string(kKnownMajor) + " (ROCm 6.0 to 7.x)";
  }
  if (version.minor < needed) return told + " is too small: " + std::to_string(needed) + " bytes are needed";
  return {};
}

constexpr size_t end_of(uint16_t offset) { return offset + sizeof(void*); }

}  // namespace

std::string ApiTables::adopt(ApiTable* tables) {
  if (tables == nullptr || tables->core == nullptr || tables->amd == nullptr) return "no tables were given";
  TableVersion core{};
  TableVersion amd{};
  std::memcpy(&core, tables->core, sizeof(core));
  std::memcpy(&amd, tables->amd, sizeof(amd));
  // Captures are impossible without these; what lies behind them, such as virtual memory, may be absent.
  std::string reason = refusal("core", core, end_of(core::kLoadAgentCodeObject.offset));
  if (reason.empty()) reason = refusal("AMD", amd, end_of(amd::kInterceptRegister.offset));
  if (!reason.empty()) return reason;
  tables_ = tables;
  save(tables->core, core_);
  save(tables->amd, amd_);
  return {};
}

void ApiTables::save(const std::byte* table, Saved& saved) {
  std::memcpy(&saved.version, table, sizeof(saved.version));
  // A table may be larger than the newest that is known; slots behind it are never looked at.
  saved.version.minor = static_cast<uint32_t>(std::min<size_t>(saved.version.minor, kLargest));
  std::memcpy(saved.bytes.data(), table, saved.version.minor);
}

}  // namespace rpl::hsa
