// What the note of a code object says about one kernel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "code/elf.h"

namespace rpl::isolate {

// {"arguments": [...], "metadata": {...}}, null where the note says nothing about the kernel.
nlohmann::json metadata_of(Bytes message_pack, std::string_view kernel);

}  // namespace rpl::isolate
