// Whether a GPU can run a code object, by the names that compilers and runtimes give instruction sets, such
// as "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-".
#pragma once

#include <string>
#include <string_view>

namespace rpl::replay {

// Empty when it can, else why not. A feature that the code does not name may be on or off.
std::string isa_difference(std::string_view code, std::string_view gpu);

}  // namespace rpl::replay
