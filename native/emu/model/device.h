// Sizes and peak rates of an MI300X: docs/reference/devices.md, sections 1.1 and 2.2; the ways of the caches and
// the rate of the Infinity Cache: AMD CDNA 3 white paper, "Memory subsystem". The ways of the L1 are chosen.
#pragma once

#include <cstdint>

namespace rpl_emu {

constexpr const char* kModelledDevice = "MI300X";
constexpr unsigned kModelXccs = 8, kModelUnitsPerXcc = 38, kModelUnits = kModelXccs * kModelUnitsPerXcc, kModelSimds = 4;
constexpr double kModelClockGhz = 2.1;
constexpr unsigned kModelCyclesPerPass = 4;  // a wave of 64 lanes on a SIMD of 16
constexpr unsigned kLdsBytesPerClock = 128, kL1BytesPerClock = 128;  // of a compute unit
constexpr unsigned kL2BytesPerClock = 128 * 16 * kModelXccs;         // 16 channels of an XCD
constexpr double kInfinityBytesPerNs = 17200, kHbmBytesPerNs = 5324.8;

struct CacheSize { uint32_t bytes, line, ways; };
constexpr CacheSize kL1Size{32U << 10, 128, 64}, kScalarCacheSize{16U << 10, 64, 64}, kL2Size{4U << 20, 128, 16},
    kInfinitySize{256U << 20, 128, 16};
constexpr unsigned kUnitsPerScalarCache = 2;

}  // namespace rpl_emu
