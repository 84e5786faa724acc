// The kernels that the runtimes bring themselves for copying and filling.
#pragma once

#include "executor/executor.h"

namespace softkfd {

// ROCr's three: bare machine code without a name.
class RocrBlitKernels : public Executor {
 public:
  bool run(const Launch& launch, const PageTable& memory) override;
};

// HIP's, compiled at its start: __amd_rocclr_*.
class HipBlitKernels : public Executor {
 public:
  bool run(const Launch& launch, const PageTable& memory) override;
};

}  // namespace softkfd
