// A code object for gfx942: an ELF file as clang and comgr write it. Everything in it is untrusted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rpl_emu {

// The file is not what it has to be: exit code 65.
class BadFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Argument {
  std::string name, kind;  // value_kind: by_value, global_buffer, hidden_...
  uint64_t offset = 0, size = 0;
};

// LLVM AMDGPUUsage, "Kernel Descriptor".
struct Descriptor {
  uint32_t group_bytes = 0, private_bytes = 0, kernarg_bytes = 0;
  uint64_t entry = 0;  // address in the object
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0, preload = 0;
};

struct Kernel {
  std::string name;
  uint64_t begin = 0, bytes = 0;  // code, address in the object
  Descriptor descriptor;
  std::vector<Argument> arguments;
  uint64_t kernarg_bytes = 0;
  bool dynamic_stack = false;
};

struct Segment {
  uint64_t address = 0, memory_bytes = 0;
  std::span<const uint8_t> file;
  bool writable = false, executable = false;
};
struct Relocation {
  uint64_t at = 0, value = 0;  // value counts from the load address if relative
  bool relative = true;
  unsigned bytes = 8;
};
// Without a name: what lies between functions, where others may be hidden.
struct Function { std::string name; uint64_t begin, bytes; };

struct CodeObject {
  std::vector<Segment> segments;
  std::vector<Relocation> relocations;
  std::vector<Function> functions, variables;
  std::map<std::string, Kernel> kernels;
  uint64_t end = 0;  // highest address
};

// The 64 bytes of a descriptor at an address of the object.
[[nodiscard]] Descriptor read_descriptor(std::span<const uint8_t> bytes, uint64_t address);
[[nodiscard]] CodeObject read_code_object(std::span<const uint8_t> file);

}  // namespace rpl_emu
