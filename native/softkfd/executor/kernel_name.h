// The name of a kernel from what the GPU is given, the address of its descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "memory/page_table.h"

namespace softkfd {

// The symbol of the code object that was loaded around the descriptor, without ".kd". Bare code, as the
// runtime's own copy kernels are, is named "code:" and a hash of its first instructions.
std::string kernel_name(const PageTable& memory, uint64_t kernel_object);

}  // namespace softkfd
