// The GPUs and pools of memory of the runtime.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/result.h"
#include "runtime/hsa_library.h"

namespace rpl::replay {

struct Gpu {
  hsa::Agent agent{};
  hsa::Pool pool{};  // its own memory
  std::vector<std::string> isas;
};

class Gpus {
 public:
  // Throws Failure no_device.
  explicit Gpus(const HsaLibrary& hsa);

  // The captured launch's own GPU if it is there and of its kind, else the first of its kind; throws Failure
  // isa_mismatch.
  [[nodiscard]] uint32_t choose(const Plan& plan) const;
  void describe(uint32_t number, Result& result) const;
  // Twice what its caches hold together, as far as the runtime knows them.
  [[nodiscard]] uint64_t bytes_that_flush(uint32_t number) const;

  [[nodiscard]] const Gpu& at(uint32_t number) const { return gpus_.at(number); }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(gpus_.size()); }
  [[nodiscard]] hsa::Agent cpu() const { return cpu_; }
  [[nodiscard]] hsa::Pool host_pool() const { return host_pool_; }
  [[nodiscard]] std::vector<hsa::Agent> agents() const;

 private:
  void add(hsa::Agent agent);
  [[nodiscard]] hsa::Pool pool_of(hsa::Agent agent, uint32_t flag) const;
  [[nodiscard]] std::string difference(uint32_t number, const std::string& isa) const;

  const HsaLibrary& hsa_;
  std::vector<Gpu> gpus_;
  hsa::Agent cpu_{};
  hsa::Pool host_pool_{};
};

}  // namespace rpl::replay
