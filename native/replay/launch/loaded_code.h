// The code object in the GPU, and what the launch needs of it.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "runtime/gpus.h"

namespace rpl::replay {

class LoadedCode {
 public:
  // Everything throws Failure bad_code.
  LoadedCode(const HsaLibrary& hsa, hsa::Agent agent, const std::string& file);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The packet without what changes from launch to launch.
  [[nodiscard]] hsa::DispatchPacket packet_of(const Kernel& kernel, uint64_t kernarg) const;
  // 0: there is no such variable, or it is smaller.
  [[nodiscard]] uint64_t address_of(const Variable& variable) const;

 private:
  [[nodiscard]] hsa::Symbol symbol(const std::string& name) const;
  template <typename T>
  [[nodiscard]] T info(hsa::Symbol symbol, uint32_t what) const;

  const HsaLibrary& hsa_;
  hsa::Agent agent_;
  std::vector<char> bytes_;
  hsa::CodeObjectReader reader_{};
  hsa::Executable executable_{};
};

}  // namespace rpl::replay
