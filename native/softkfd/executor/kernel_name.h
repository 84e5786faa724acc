// The name of a kernel from what the GPU is given, the address of its descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/page_table.h"

namespace softkfd {

// The symbol of the code object that was loaded around the descriptor, without ".kd". Bare code, as the
// runtime's own copy kernels are, is named "code:" and a hash of its first instructions.
std::string kernel_name(const PageTable& memory, uint64_t kernel_object);

// What the loader keeps of a code object. Addresses are the GPU's.
struct LoadedCode {
  struct Function {
    std::string name;
    uint64_t begin = 0, bytes = 0;
  };
  uint64_t base = 0;
  uint64_t text = 0, text_bytes = 0;  // the part that is code
  std::vector<Function> functions;    // those that are visible from outside: kernels
};

// The code object around a descriptor, or nothing for bare code.
std::optional<LoadedCode> loaded_code(const PageTable& memory, uint64_t kernel_object);

}  // namespace softkfd
