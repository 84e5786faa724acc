// What vector and scalar memory accesses are told to, where caches are modelled (docs/EMULATOR.md, "Modelled").
#pragma once

#include <cstdint>

namespace rpl_emu {

struct Wave;

struct TrafficSink {
  virtual ~TrafficSink() = default;
  // One access of a wave: an address for each lane that is set in `lanes`.
  virtual void vector_access(const Wave& w, const uint64_t* addresses, uint64_t lanes, unsigned bytes, bool write, bool atomic) = 0;
  virtual void scalar_access(const Wave& w, uint64_t address, unsigned bytes) = 0;
};

// Requests between the levels. Modelled, never counted.
struct Traffic {
  uint64_t l1_reads = 0, l1_hits = 0;                // lines of 128 bytes
  uint64_t scalar_reads = 0, scalar_hits = 0;        // lines of 64 bytes
  uint64_t l2_reads_128 = 0, l2_reads_64 = 0;        // of L1; of the scalar cache
  uint64_t l2_writes_64 = 0, l2_atomics_64 = 0;
  uint64_t l2_hits = 0, l2_misses = 0;
  uint64_t fabric_reads_128 = 0, fabric_writes_64 = 0;
  uint64_t infinity_hits = 0;                        // of the fabric's reads
  uint64_t hbm_reads_128 = 0, hbm_writes_64 = 0;
};

}  // namespace rpl_emu
