// What a launch counted and what is modelled from it, as JSON.
#pragma once

#include "cli/json.h"
#include "machine/launch.h"

namespace rpl_emu {

// Places count from `base`, where the code object lies.
void write_counts(Json& json, const Program& program, uint64_t base, const LaunchResult& r, bool by_place);
// The block "modelled"; without counters of memory it is null.
void write_modelled(Json& json, const Program& program, const LaunchResult& r, const Limits& limits);

}  // namespace rpl_emu
