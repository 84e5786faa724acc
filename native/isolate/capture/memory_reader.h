// Reads memory that a GPU reaches, block by block, whatever its size.
#pragma once

#include <array>
#include <functional>

#include "capture/runtime.h"
#include "code/elf.h"

namespace rpl::isolate {

class MemoryReader {
 public:
  static constexpr size_t kBlockBytes = 8 << 20;

  MemoryReader(const hsa::ApiTables& api, const std::vector<AgentDescription>& agents, hsa::Agent gpu,
               std::chrono::milliseconds limit);
  ~MemoryReader();
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  // Why it can't read; empty when it can.
  [[nodiscard]] const std::string& error() const { return error_; }

  // Calls `take` for block after block while the next one is on its way. False: a copy failed or did not end in
  // time, or `take` returned false.
  using Take = std::function<bool(Bytes)>;
  // By a DMA engine of the GPU.
  bool read(uint64_t base, uint64_t size, const Take& take);
  // By the CPU: memory that only the program's own page table has.
  bool read_by_cpu(uint64_t base, uint64_t size, const Take& take);

 private:
  bool start(size_t buffer, uint64_t base, uint64_t size);
  bool finish(size_t buffer);
  void allocate(hsa::Agent cpu);

  const hsa::ApiTables& api_;
  hsa::Agent gpu_;
  hsa::Agent cpu_{};
  std::chrono::milliseconds limit_;
  std::string error_;
  std::byte* memory_ = nullptr;
  bool stuck_ = false;
  TimedSignal first_, second_;
};

}  // namespace rpl::isolate
