// A launch of one kernel: registers as the hardware sets them up, waves, scheduling, limits.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/decode.h"
#include "loader/code_object.h"
#include "machine/guest_memory.h"
#include "machine/touched_lines.h"
#include "machine/traffic.h"
#include "machine/wave.h"

namespace rpl_emu {

struct LaunchSizes {
  std::array<uint32_t, 3> grid{1, 1, 1};   // work-items
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_lds = 0;
  uint32_t stack = 0;  // more scratch bytes per lane, for calls whose need the compiler does not know
  uint64_t kernarg_at = 0;  // where the arguments lie already, hidden ones too; 0: they are placed and filled in
};

// Of each floating-point result that is not exact, of 16 bits only with `round_halves`. bfloat16 and divisions of integers
// stay as they are.
// `drawn` takes another direction every few instructions.
enum class Rounding : uint8_t { nearest, up, down, zero, drawn };

struct Limits {
  uint64_t instructions = 0;  // 0: none
  double seconds = 0;
  unsigned threads = 1;
  uint64_t seed = 1;
  bool count_memory = true;
  bool model_caches = false;  // one thread then: the model sees accesses one after the other
  uint64_t order = 0;  // of workgroups: 0 rising, else another one for each number; their waves take turns backwards where it is odd
  Rounding rounding = Rounding::nearest;
  bool round_halves = false;  // inexact ones count as rounded, too
  std::atomic<uint64_t>* total = nullptr;  // what has run is added there, while it runs
  uint64_t quantum = 16384;  // instructions after which it is another wave's turn
};

enum class Outcome : uint8_t { ended, fault, limit, trap, unsupported };

struct WavePlace {
  std::array<uint32_t, 3> group{};
  uint32_t wave = 0;
  uint64_t pc = 0;  // word of code
};

struct LaunchResult {
  Outcome outcome = Outcome::ended;
  std::string reason;
  WavePlace where;
  uint64_t address = 0;
  uint32_t lane = 0;
  bool write = false;
  uint64_t waves = 0, groups = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads
  bool rounded = false;  // some result may not have been exact; lanes that were off count, too
  std::vector<Count> counts;         // by word of code
  std::vector<MemoryCount> memory;   // by word of code
  Touched touched;                   // by all waves together; where memory is counted
  std::optional<Traffic> traffic;    // where caches were modelled
};

class Findings;

// A code object in memory, with what was decoded of it.
class LoadedObject {
 public:
  // At `wanted` where that is free; 0: anywhere.
  LoadedObject(const CodeObject& object, GuestMemory& memory, uint64_t wanted = 0);
  // Somebody else has placed it there.
  LoadedObject(const CodeObject& object, uint64_t base) : object_(object), base_(base) {}
  [[nodiscard]] uint64_t base() const { return base_; }
  [[nodiscard]] const CodeObject& object() const { return object_; }
  [[nodiscard]] std::span<const uint8_t> bytes() const { return {reinterpret_cast<const uint8_t*>(base_), object_.end}; }
  // Everything that the kernel can reach. What is not offered stops the launch where it is reached, by name and address;
  // a decoder that is strict throws Unavailable before.
  [[nodiscard]] Program decode(const Kernel& kernel, const Decoder& decoder) const;

 private:
  const CodeObject& object_;
  uint64_t base_ = 0;

  [[nodiscard]] static std::vector<uint64_t> made_addresses(const Program& program, uint64_t text, size_t first, size_t last);
  void decode_reachable(Program& program, const Kernel& kernel, const Segment& text, const Decoder& decoder, const RegisterFile& file) const;
};

[[nodiscard]] RegisterFile register_file(const Descriptor& descriptor, bool sets_mode, bool sets_rounding = false);

// Kernel arguments: the given bytes in front, the hidden ones as the metadata asks for them.
void fill_hidden_arguments(const Kernel& kernel, const LaunchSizes& sizes, uint64_t queue, std::vector<uint8_t>& kernarg);

// A kernel whose code, arguments, dispatch packet and queue lie in memory already. Addresses are the kernel's.
struct Placed {
  uint64_t entry = 0;
  uint64_t kernarg = 0, packet = 0, queue = 0;
  const uint8_t* kernarg_bytes = nullptr;
  Ranges ranges;
  // Where others map memory while the kernel runs: asked again before an access outside of `ranges` is a fault.
  std::function<Ranges()> ranges_now;
  GlobalSync* sync = nullptr;  // of the GPU; none: the launch has its own
  std::function<void(uint32_t)> interrupt;  // S_SENDMSG with MSG_INTERRUPT, and M0; empty: nobody takes them
};
[[nodiscard]] LaunchResult launch(const Placed& placed, const Kernel& kernel, const Program& program, const RowLists& lanes,
                                  const LaunchSizes& sizes, const Limits& limits, Findings* findings, TrafficSink* log = nullptr);

[[nodiscard]] LaunchResult launch(const LoadedObject& object, const Kernel& kernel, const Program& program, const RowLists& lanes,
                                  const LaunchSizes& sizes, std::vector<uint8_t> kernarg, GuestMemory& memory, const Limits& limits,
                                  Findings* findings, TrafficSink* log = nullptr);  // told instead of the model of caches

}  // namespace rpl_emu
