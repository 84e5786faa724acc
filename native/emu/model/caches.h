// A model of the caches of an MI300X: least recently used, cold at the start, in the order in which the emulator
// happens to run the waves. Hardware's order differs, so hits between workgroups do too.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "machine/traffic.h"
#include "model/device.h"

namespace rpl_emu {

class Cache {
 public:
  struct Line {
    uint64_t tag = 0;  // number of the line and one; 0: empty
    uint8_t present = 0, dirty = 0;  // a bit for each 64 bytes
  };
  explicit Cache(const CacheSize& size);
  // The line, as the last used one of its set; null when it is not there.
  Line* find(uint64_t number);
  // Makes room; `evicted` is what had to go.
  Line& insert(uint64_t number, Line& evicted);
  void drop(uint64_t number);
  template <class F>
  void each(F visit) const {
    for (uint64_t k = 0; k < uint64_t{sets_} * ways_; ++k)
      if (lines_.get()[k].tag != 0) visit(lines_.get()[k]);
  }

 private:
  struct Free { void operator()(Line* p) const { std::free(p); } };
  uint32_t sets_, ways_;
  std::unique_ptr<Line, Free> lines_;  // zeroed by the system when they are first used
  [[nodiscard]] Line* set(uint64_t number) const { return lines_.get() + number % sets_ * ways_; }
};

class CacheModel : public TrafficSink {
 public:
  CacheModel();
  void vector_access(const Wave& w, const uint64_t* addresses, uint64_t lanes, unsigned bytes, bool write, bool atomic) override;
  void scalar_access(const Wave& w, uint64_t address, unsigned bytes) override;
  // At the end of a kernel the L2 writes back what is dirty.
  [[nodiscard]] Traffic finish();

 private:
  struct Part { uint64_t number, written; };  // 64 bytes of memory, and which of them are written
  Traffic traffic_;
  std::vector<Cache> l1_, scalar_, l2_;
  Cache infinity_;

  void read_l2(unsigned xcc, uint64_t line);
  void write_l2(unsigned xcc, const Part& part, bool needs_old);
  Cache::Line& l2_line(unsigned xcc, uint64_t line, bool read);
  void write_back(const Cache::Line& line);
  void fabric_read(uint64_t line);
};

}  // namespace rpl_emu
