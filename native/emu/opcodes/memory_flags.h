// What memory instructions keep in `flags`.
#pragma once

#include <cstdint>

namespace rpl_emu {

constexpr uint32_t kReturns = 1;  // atomics: the old value is wanted
constexpr uint32_t kScratch = 2;
constexpr uint32_t kFlat = 4;
constexpr uint32_t kIndexed = 8;  // buffers: idxen
constexpr uint32_t kCoherent = 32;  // sc0 or sc1: how atomic and volatile loads and stores are written
constexpr uint32_t kOffset = 16;  // buffers: offen

}  // namespace rpl_emu
