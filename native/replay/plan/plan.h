// What to do, as rpl-vmreplay wrote it down. It has read and checked the capture; here only its shape is
// checked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rpl::replay {

struct Range {
  uint64_t address = 0;
  uint64_t size = 0;
};

// Memory whose bytes are in a file; a file that ends before its size is followed by zeros.
struct Content {
  Range range;
  std::string file;
  uint32_t gpu = 0;
};

struct Variable {
  std::string name;
  uint64_t size = 0;
  std::string file;
  std::optional<uint64_t> address;  // where it was in the captured process
};

struct Kernel {
  std::string name;
  std::string code_object;
  std::string isa;  // of the code object, as runtimes spell it
  bool captured_code = true;
  std::array<uint32_t, 3> grid{};
  std::array<uint16_t, 3> workgroup{};
  uint16_t setup = 3;
  uint32_t group_bytes = 0;
  uint32_t private_bytes = 0;
  std::optional<uint32_t> dynamic_group_bytes;  // beyond what the code object asks for
  std::string kernarg_file;
  uint64_t kernarg_bytes = 0;
  std::optional<uint64_t> kernarg_address;  // in the captured process
};

// Where the captured code object was.
struct CodePlace {
  Range range;
  uint64_t kernel_object = 0;  // address of the kernel's descriptor; 0: not known
  std::string pointers;        // what captured pointers lead to, which the kernel may call; empty: nothing
};

struct Plan {
  bool reserve_only = false;
  std::vector<Range> ranges;  // to reserve, when that is all
  std::string isa;            // of the GPU that the launch was on; empty: any
  std::string captured_isa;   // of the captured code object
  uint32_t gpu = 0;           // its number
  uint32_t iterations = 1;
  uint32_t warm_ups = 0;
  bool recopy = true;
  std::optional<uint64_t> time_limit_ns;  // of one launch
  std::optional<uint64_t> deadline_ns;    // of everything, from the start of the program
  bool cold_caches = false;  // evicted before each launch
  Kernel kernel;
  std::optional<CodePlace> code_place;
  std::optional<Kernel> other;    // takes turns with it: `iterations` pairs
  std::vector<bool> other_first;  // of each pair
  std::vector<Content> regions;
  std::vector<Content> edits;
  std::vector<Variable> variables;
  std::vector<Range> keep;
  std::string hash_folder;  // empty: no hashes
  std::string keep_file, keep_other_file;            // what launches of each kernel leave there
  std::string variables_file, variables_other_file;  // of its module, one behind the other

  // Throws std::exception for what is no plan.
  static Plan read(const std::string& file);
};

}  // namespace rpl::replay
