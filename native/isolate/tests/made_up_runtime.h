// A runtime made up for tests: tables of any version, agents, pools, signals, and a queue whose packets are
// done at once. It takes the place of a program where the real runtime can't be had, as under the address
// sanitizer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hsa/api_tables.h"

namespace made_up {

inline constexpr rpl::hsa::Agent kCpu{1};
inline constexpr rpl::hsa::Agent kGpu{2};
inline constexpr rpl::hsa::Pool kHostPool{11};
inline constexpr rpl::hsa::Pool kDevicePool{12};

// One runtime at a time.
class Runtime {
 public:
  explicit Runtime(uint32_t major = 2, uint32_t core_bytes = 1016, uint32_t amd_bytes = 624);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  rpl::hsa::ApiTable* tables() { return &tables_; }
  // The function that a program would call.
  template <typename F>
  F* table(rpl::hsa::Slot<F> slot) {
    F* function = nullptr;
    const auto& bytes = slot.table == rpl::hsa::Table::kCore ? core_ : amd_;
    std::memcpy(&function, bytes.data() + slot.offset, sizeof(function));
    return function;
  }
  template <typename F>
  void set(rpl::hsa::Slot<F> slot, F* function) {
    auto& bytes = slot.table == rpl::hsa::Table::kCore ? core_ : amd_;
    if (slot.offset + sizeof(function) <= bytes.size()) {
      std::memcpy(bytes.data() + slot.offset, &function, sizeof(function));
    }
  }

  // Rings the doorbell once for all of them: the handler sees one batch.
  void submit(const std::vector<rpl::hsa::DispatchPacket>& packets) const;
  // What the hardware was given, without the tool's barriers.
  std::vector<uint64_t> kernels_run;
  // What a kernel does, by its object.
  std::map<uint64_t, std::function<void(const rpl::hsa::DispatchPacket&)>> kernels;
  bool loses_barriers = false;
  bool fails_copies = false;
  size_t live_signals = 0;

  // Allocations by their address; the GPU reaches all of them.
  struct Block {
    size_t bytes;
    rpl::hsa::Agent owner;
  };
  std::map<uint64_t, Block> blocks;
  // Symbols of the one executable.
  struct Symbol {
    std::string name;
    uint32_t kind;
    uint64_t address;
    uint32_t size;
  };
  std::vector<Symbol> symbols;
  rpl::hsa::Queue queue{};
  rpl::hsa::PacketHandler handler = nullptr;
  void* handler_data = nullptr;

 private:
  std::vector<std::byte> core_, amd_;
  rpl::hsa::ApiTable tables_{};
};

Runtime& runtime();

rpl::hsa::Signal make_signal(int64_t value);
int64_t value_of(rpl::hsa::Signal signal);

}  // namespace made_up
