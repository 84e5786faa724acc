// One replay from the first reservation to the last hash. What it holds is given back in the opposite order.
#pragma once

#include <memory>

#include "launch/launcher.h"
#include "launch/loaded_code.h"
#include "memory/copier.h"
#include "memory/placed_memory.h"

namespace rpl::replay {

class Session {
 public:
  Session(Plan plan, Result& result);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws Failure; `result` has what is known until then.
  void reserve(const std::vector<Pages>& pages, HeldPages& held);
  void replay();

 private:
  void start();
  void refuse_what_shadows_would_run() const;
  uint64_t place_kernarg();
  void restore();
  void look_at_memory();
  [[nodiscard]] bool differs(const Variable& variable, uint64_t address);
  [[nodiscard]] uint32_t gpu_of(const Range& range) const;

  Plan plan_;
  Result& result_;
  std::unique_ptr<HsaLibrary> hsa_;
  bool started_ = false;
  Events events_;
  std::unique_ptr<Gpus> gpus_;
  uint32_t gpu_ = 0;
  std::unique_ptr<PlacedMemory> memory_;
  std::unique_ptr<Copier> copier_;
  void* kernarg_ = nullptr;
  std::unique_ptr<LoadedCode> code_;
  std::unique_ptr<Launcher> launcher_;
};

}  // namespace rpl::replay
