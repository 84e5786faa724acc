// The state of one wave: 64 lanes that go through the program together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>

#include "machine/instruction.h"
#include "machine/memory.h"

namespace rpl_emu {

// Scalar registers that have names.
constexpr unsigned kFlatScratch = 102, kXnack = 104, kVcc = 106, kTrapTemporaries = 108, kM0 = 124, kExec = 126;
constexpr unsigned kScalars = 128;
// Rows behind the vector registers: where operands that need preparation lie. Four of two words each,
// and a result of two.
constexpr unsigned kTemporaryRows = 12;

// From `fault` on the launch ends there.
enum class Stop : uint8_t { none, ended, barrier, yield, resource, fault, unsupported, trap };

struct Count {
  uint64_t executed = 0;
  uint64_t lanes = 0;
};

// While waves run, counters by words of code hold differences: a run of instructions adds itself where it begins and
// takes itself away behind its last instruction's first word.
inline void count_run(Count* counts, uint64_t first, uint64_t last, uint64_t lanes, uint64_t times = 1) {
  counts[first].executed += times;
  counts[first].lanes += lanes;
  counts[last + 1].executed -= times;
  counts[last + 1].lanes -= lanes;
}

struct MemoryCount {
  uint64_t bytes = 0;
  uint64_t lines64 = 0;
  uint64_t lines128 = 0;
  uint64_t conflicts = 0;  // LDS: passes over the banks beyond the first
};

// What all waves of a GPU share to wait for each other (DS_GWS_*); it outlives launches: one kernel sets it up for the next.
struct GlobalSync {
  struct Resource { uint32_t counter = 0; bool flag = false; };
  std::mutex lock;
  std::array<Resource, 64> resources;

  [[nodiscard]] bool flag(unsigned number) {
    const std::scoped_lock guard(lock);
    return resources[number].flag;
  }
};

struct Shadow;
struct TrafficSink;
class TouchedLines;

struct Workgroup {
  uint8_t* lds = nullptr;
  uint32_t lds_bytes = 0;
  uint32_t id[3] = {0, 0, 0};
  uint32_t number = 0;
  const std::function<void(uint32_t)>* interrupt = nullptr;  // none: nobody takes them
  GlobalSync* sync = nullptr;
  Shadow* shadow = nullptr;
  TrafficSink* traffic = nullptr;
};

struct Wave {
  alignas(64) uint32_t s[kScalars] = {};
  uint32_t (*v)[kLanes] = nullptr;  // vector registers, accumulation registers, temporary rows
  uint64_t pc = 0;                  // in words of code; the instruction after the running one
  const Instruction* code = nullptr;
  uint64_t code_words = 0;
  uint64_t code_begin = 0;          // address of the first word
  uint32_t scc = 0;
  uint32_t mode = 0;
  Stop stop = Stop::none;
  uint8_t sync_resource = 0;        // with Stop::resource: the wave waits until its flag is another than this
  bool sync_flag = false;
  Workgroup* group = nullptr;
  Ranges ranges;
  uint32_t hint = 0;
  uint8_t* scratch = nullptr;
  uint32_t scratch_bytes = 0;       // of one lane
  uint32_t index = 0;               // in its workgroup
  uint32_t xcc = 0;
  uint64_t full_exec = 0;           // lanes that have a work-item
  uint64_t clock = 0;               // counts instructions: time registers read it
  MemoryCount* memory_count = nullptr;  // by words of code; none: not counted
  TouchedLines* touched = nullptr;      // none: not counted
  bool shared_memory_model = false;     // other threads run beside this one
  // What stopped it.
  const char* reason = nullptr;
  uint64_t fault_address = 0;
  uint32_t fault_lane = 0;
  bool fault_write = false;

  [[nodiscard]] uint64_t exec() const { return s[kExec] | uint64_t{s[kExec + 1]} << 32; }
  void set_exec(uint64_t value) { set64(kExec, value); }
  [[nodiscard]] uint64_t get64(unsigned index_) const { return s[index_] | uint64_t{s[index_ + 1]} << 32; }
  void set64(unsigned index_, uint64_t value) {
    s[index_] = static_cast<uint32_t>(value);
    s[index_ + 1] = static_cast<uint32_t>(value >> 32);
  }
  [[nodiscard]] uint32_t scalar(const Operand& from) const {
    if (from.place == Place::scalar) return s[from.index];
    if (from.place == Place::scc) return scc;
    return static_cast<uint32_t>(from.value);
  }
  [[nodiscard]] uint64_t scalar64(const Operand& from) const {
    if (from.place == Place::scalar) return get64(from.index);
    if (from.place == Place::scc) return scc;
    return from.value;
  }
  // Something that only shows where it runs, and that is not offered.
  void refuse(const char* why) {
    stop = Stop::unsupported;
    reason = why;
  }
  void fault(uint64_t address, unsigned lane, bool write, const char* why) {
    stop = Stop::fault;
    fault_address = address;
    fault_lane = lane;
    fault_write = write;
    reason = why;
  }
};

}  // namespace rpl_emu
