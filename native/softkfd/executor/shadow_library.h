// Kernels as native functions of a shared library (executor/shadow.h).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "executor/executor.h"
#include "executor/shadow.h"

namespace softkfd {

class ShadowLibrary : public Executor {
 public:
  explicit ShadowLibrary(const softkfd_shadow* table);
  // Throws std::runtime_error when the file is no such library.
  static std::unique_ptr<ShadowLibrary> load(const std::string& file);

  bool run(const Launch& launch, const PageTable& memory) override;

 private:
  std::map<std::string, decltype(softkfd_shadow::run), std::less<>> functions_;
};

}  // namespace softkfd
