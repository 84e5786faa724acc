// The code that a program loads: kernels by the address that dispatches name, the files they came in,
// variables.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/mapped_file.h"
#include "code/name_filter.h"
#include "hsa/api_tables.h"

namespace rpl::isolate {

// One code object that holds a wanted kernel. Its bytes wait in a file: programs may load gigabytes of them,
// and give their own copy back as soon as it is loaded.
struct CodeObject {
  uint64_t agent;
  off_t offset;
  size_t size;
  bool from_file;
  std::vector<std::string> kernels;
};

struct Kernel {
  std::string name;  // mangled, without ".kd"
  std::string readable;
  uint64_t agent = 0;
  uint64_t executable = 0;
  uint32_t group_segment_size = 0;
  uint32_t private_segment_size = 0;
  uint32_t kernarg_size = 0;
  bool wanted = false;
  std::shared_ptr<const CodeObject> code;
  std::atomic<bool> launched{false};
};

struct Variable {
  std::string name;
  uint64_t address;
  uint64_t size;
};

class KernelRegistry {
 public:
  // `spool_folder`: where the bytes of code objects wait, in a file without a name.
  KernelRegistry(const NameFilter& filter, const std::string& spool_folder);
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  void add_reader(uint64_t reader, const void* bytes, size_t size);
  void add_reader(uint64_t reader, int file);
  void remove_reader(uint64_t reader);
  void load(uint64_t executable, uint64_t agent, uint64_t reader);
  // After freezing: addresses are known from then on.
  void read_symbols(const hsa::ApiTables& api, hsa::Executable executable);
  void remove_executable(uint64_t executable);

  // Stays valid as long as the pointer is held.
  std::shared_ptr<Kernel> find(uint64_t kernel_object) const;
  std::vector<Variable> variables_of(uint64_t agent) const;
  [[nodiscard]] MappedFile bytes_of(const CodeObject& code) const;

 private:
  struct Reader {
    const void* bytes;
    size_t size;
    int file;
  };
  struct ExecutableParts {
    std::vector<std::shared_ptr<const CodeObject>> codes;
    std::vector<uint64_t> kernel_objects;
    std::map<uint64_t, std::vector<Variable>> variables;  // by agent
  };
  struct Found;

  [[nodiscard]] std::shared_ptr<CodeObject> wanted_code(Bytes bytes) const;
  bool spool(Bytes bytes, CodeObject& code);

  const NameFilter& filter_;
  int spool_ = -1;
  off_t spooled_ = 0;
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, Reader> readers_;
  std::unordered_map<uint64_t, ExecutableParts> executables_;
  std::unordered_map<uint64_t, std::shared_ptr<Kernel>> kernels_;
};

}  // namespace rpl::isolate
