// What runs kernels. The packet processor knows no kernel: it asks executors in turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/page_table.h"

namespace softkfd {

struct Launch {
  uint32_t gpu = 0;
  std::string kernel;  // as the compiler named it, or what an executor recognised the bare code as
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> workgroup{};
  uint32_t group_bytes = 0;
  uint32_t private_bytes = 0;
  uint64_t kernarg = 0;
  uint32_t kernarg_bytes = 0;
  uint64_t kernel_object = 0;  // address of the descriptor
  uint64_t queue_record = 0;
  uint64_t done_before = 0;  // of the log, when the packet was found
  std::array<std::byte, 64> packet{};
};

// A kernel that no executor can go on with; says why.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A kernel that stopped itself: a failed assertion, for example.
class KernelTrap : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Executor {
 public:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // False when it does not know the kernel; throws GpuFault, KernelTrap and Refusal.
  virtual bool run(const Launch& launch, const PageTable& memory) = 0;
};

// The first that knows a kernel runs it.
class Executors : public Executor {
 public:
  void add(std::unique_ptr<Executor> executor) { executors_.push_back(std::move(executor)); }
  bool run(const Launch& launch, const PageTable& memory) override {
    for (const auto& executor : executors_) {
      if (executor->run(launch, memory)) return true;
    }
    return false;
  }

 private:
  std::vector<std::unique_ptr<Executor>> executors_;
};

}  // namespace softkfd
