// Reads memory that a GPU reaches, block by block, whatever its size.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "capture/runtime.h"
#include "code/elf.h"

namespace rpl::isolate {

class MemoryReader {
 public:
  static constexpr size_t kBlockBytes = 4 << 20;
  // So many blocks may be on their way: engine and writer need not wait for each other's turn.
  static constexpr size_t kBlocks = 8;

  MemoryReader(const hsa::ApiTables& api, const std::vector<AgentDescription>& agents, hsa::Agent gpu,
               std::chrono::milliseconds limit);
  ~MemoryReader();
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  // Why it can't read; empty when it can.
  [[nodiscard]] const std::string& error() const { return error_; }

  // Calls `take` for block after block while the next ones are on their way. False: a copy failed or did not
  // end in time, or `take` returned false.
  using Take = std::function<bool(Bytes)>;
  // By a DMA engine of the GPU.
  bool read(uint64_t base, uint64_t size, const Take& take);
  // By the CPU: memory that only the program's own page table has.
  bool read_by_cpu(uint64_t base, uint64_t size, const Take& take);
  void forget_error() { error_.clear(); }

  // Memory of the program, cut where it begins and ceases to be readable; nothing is between the runs.
  struct Run {
    uint64_t size;
    bool readable;
  };
  static std::vector<Run> runs_of(uint64_t base, uint64_t size);

 private:
  bool start(size_t block, uint64_t base, uint64_t size);
  bool finish(size_t block);
  void allocate(hsa::Agent cpu);
  [[nodiscard]] std::byte* memory_of(size_t block) const { return memory_ + block % kBlocks * kBlockBytes; }
  TimedSignal& signal_of(size_t block) { return *signals_[block % kBlocks]; }

  const hsa::ApiTables& api_;
  hsa::Agent gpu_;
  hsa::Agent cpu_{};
  std::chrono::milliseconds limit_;
  std::string error_;
  std::byte* memory_ = nullptr;
  bool stuck_ = false;
  std::array<std::unique_ptr<TimedSignal>, kBlocks> signals_;
};

}  // namespace rpl::isolate
