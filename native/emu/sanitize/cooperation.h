// How the waves of a launch work together: what each wave does in which order to synchronise, and which version of a
// shared word it reads and writes. Two kernels of which one is meant to be the other, only quicker, agree in barriers,
// in fences with the atomics between them, and in what is read where it was written by other waves. How many atomics
// there are, which stores change nothing, and where in LDS something lies, is left to them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "machine/wave.h"

namespace rpl_emu {

class Cooperation {
 public:
  // Memory that lies elsewhere in another code object, by what stands for its address.
  struct Named {
    uint64_t begin = 0, end = 0, name = 0;
  };
  // `lds_places`: places in LDS mean the same in both kernels.
  Cooperation(std::vector<Named> named, bool lds_places) : named_(std::move(named)), lds_places_(lds_places) {}

  // Before it happens.
  void access(const Wave& w, const Instruction& i, unsigned lane, uint64_t address, unsigned bytes, bool write, bool atomic, bool lds);
  void execute(const Wave& w, const Instruction& i);
  void barrier(const Wave& w);
  void barrier_passed(const Workgroup& group);
  void group_started(const Workgroup& group, uint32_t waves);
  void group_ended(const Workgroup& group);  // while its LDS is there
  void launch_ended();

  // What `b` does otherwise than `a`, as a line for people; nothing: the same.
  [[nodiscard]] static std::optional<std::string> difference(const Cooperation& a, const Cooperation& b);
  // The kernels have LDS of other sizes, and no renaming of words explains what `b` does. Then barriers may be other
  // ones, too, as far as nothing races.
  [[nodiscard]] static bool lds_unlike(const Cooperation& a, const Cooperation& b);
  [[nodiscard]] uint64_t barriers() const { return barriers_; }
  [[nodiscard]] uint64_t atomics() const { return atomics_; }

 private:
  struct LaneTrace {
    uint64_t hash = 0;
    uint32_t events = 0;
    uint64_t last_fence = 0;  // of several in a row one counts
  };
  struct WaveTrace {
    std::array<LaneTrace, kLanes> lanes{};
    std::vector<uint64_t> epochs{0};          // what was synchronised by, each kind and place once, in order
    std::unordered_set<uint64_t> seen;
    uint64_t barriers = 0;
    bool fences = false;
  };
  // What became of one word. A version begins with the first write behind a barrier, or by another wave. Those that
  // leave what was there before are counted beside, too: who leaves such a write out does nothing else.
  struct Word {
    uint32_t group = ~0U, epoch = 0, writer = ~0U, version = 0;
    uint64_t writes = 0;                      // hash of who wrote each version
    uint32_t first_wave = ~0U;
    bool several_waves = false, several_groups = false, written = false;
    std::vector<uint32_t> reads;              // wave << 16 | version, sorted
    uint64_t place = 0;                       // in this process
    uint32_t before = 0;                      // what the last version began with
    bool open = false;                        // whether that version changes anything is not known yet
    uint32_t changed = 0;                     // versions that do
    uint64_t changed_writes = 0;
    std::vector<uint32_t> changed_reads;
  };
  struct GroupState {
    uint32_t waves = 0, epoch = 0;
  };
  using Words = std::unordered_map<uint64_t, Word>;

  std::vector<Named> named_;
  bool lds_places_;
  std::map<uint64_t, WaveTrace> waves_;       // group << 32 | wave
  std::unordered_map<uint32_t, GroupState> groups_;
  Words memory_;
  std::map<uint32_t, Words> lds_;             // by group
  std::vector<uint8_t> fence_at_;             // by word of code: 0 not looked at, 1 none, 2 a fence
  uint64_t barriers_ = 0, atomics_ = 0;

  [[nodiscard]] uint64_t place_of(uint64_t address) const;
  WaveTrace& trace_of(const Wave& w);
  static void add(LaneTrace& lane, uint64_t event);
  void touch(Word& word, const Wave& w, uint64_t place, bool write) const;
  static void settle(Word& word);
  [[nodiscard]] static uint32_t now_at(uint64_t place);
  [[nodiscard]] static bool conflicts(const Word& word) { return word.written && word.several_waves && !word.several_groups; }
  [[nodiscard]] static std::optional<std::string> words_differ(const Words& a, const Words& b, const std::string& where);
  [[nodiscard]] static std::vector<uint64_t> histories(const Words& words);
};

}  // namespace rpl_emu
