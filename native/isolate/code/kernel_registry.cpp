#include "code/kernel_registry.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace rpl::isolate {
namespace {

bool write_all(int file, Bytes bytes, off_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file, bytes.data(), bytes.size(), offset);
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

constexpr off_t kPage = 4096;

}  // namespace

// What freezing an executable made known, collected without a lock: the runtime is asked for it.
struct KernelRegistry::Found {
  const hsa::ApiTables* api;
  hsa::Executable executable;
  const NameFilter* filter;
  std::vector<std::pair<uint64_t, std::shared_ptr<Kernel>>> kernels;
  std::vector<std::pair<uint64_t, Variable>> variables;

  template <typename T>
  [[nodiscard]] T info(hsa::Symbol symbol, uint32_t what) const {
    T value{};
    api->original(hsa::core::kSymbolGetInfo)(symbol, what, &value);
    return value;
  }
  void add(hsa::Symbol symbol) {
    const auto kind = info<uint32_t>(symbol, hsa::kSymbolType);
    std::string name(info<uint32_t>(symbol, hsa::kSymbolNameLength), '\0');
    api->original(hsa::core::kSymbolGetInfo)(symbol, hsa::kSymbolName, name.data());
    const auto agent = info<uint64_t>(symbol, hsa::kSymbolAgent);
    if (kind == hsa::kSymbolVariable) {
      const Variable variable{name, info<uint64_t>(symbol, hsa::kSymbolVariableAddress),
                              info<uint32_t>(symbol, hsa::kSymbolVariableSize)};
      if (variable.address != 0 && variable.size != 0) variables.emplace_back(agent, variable);
    } else if (kind == hsa::kSymbolKernel) {
      auto kernel = std::make_shared<Kernel>();
      if (name.ends_with(".kd")) name.resize(name.size() - 3);
      kernel->name = name;
      kernel->readable = demangled(name);
      kernel->agent = agent;
      kernel->executable = executable.handle;
      kernel->group_segment_size = info<uint32_t>(symbol, hsa::kSymbolGroupSegmentSize);
      kernel->private_segment_size = info<uint32_t>(symbol, hsa::kSymbolPrivateSegmentSize);
      kernel->kernarg_size = info<uint32_t>(symbol, hsa::kSymbolKernargSegmentSize);
      kernel->wanted = filter->wants(kernel->name, kernel->readable);
      kernels.emplace_back(info<uint64_t>(symbol, hsa::kSymbolKernelObject), std::move(kernel));
    }
  }
};

KernelRegistry::KernelRegistry(const NameFilter& filter, const std::string& spool_folder) : filter_(filter) {
  constexpr mode_t kOwner = 0600;
  spool_ = open(spool_folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwner);
  // Not every file system has files without names.
  if (spool_ < 0) spool_ = memfd_create("rpl-isolate-code", MFD_CLOEXEC);
}

KernelRegistry::~KernelRegistry() {
  if (spool_ >= 0) close(spool_);
  for (const auto& [handle, reader] : readers_) {
    if (reader.file >= 0) close(reader.file);
  }
}

void KernelRegistry::add_reader(uint64_t reader, const void* bytes, size_t size) {
  const std::scoped_lock lock(mutex_);
  readers_[reader] = {bytes, size, -1};
}

void KernelRegistry::add_reader(uint64_t reader, int file) {
  // The program may close its own at once.
  const int kept = fcntl(file, F_DUPFD_CLOEXEC, 0);
  const std::scoped_lock lock(mutex_);
  readers_[reader] = {nullptr, 0, kept};
}

void KernelRegistry::remove_reader(uint64_t reader) {
  const std::scoped_lock lock(mutex_);
  const auto found = readers_.find(reader);
  if (found == readers_.end()) return;
  if (found->second.file >= 0) close(found->second.file);
  readers_.erase(found);
}

void KernelRegistry::load(uint64_t executable, uint64_t agent, uint64_t reader) {
  const std::scoped_lock lock(mutex_);
  const auto found = readers_.find(reader);
  if (found == readers_.end()) return;
  const MappedFile mapped(found->second.file);
  const bool from_file = found->second.file >= 0;
  const Bytes bytes = from_file
                          ? mapped.bytes()
                          : Bytes(static_cast<const std::byte*>(found->second.bytes), found->second.size);
  const std::shared_ptr<CodeObject> code = wanted_code(bytes);
  if (!code) return;
  code->agent = agent;
  code->from_file = from_file;
  if (spool(bytes, *code)) executables_[executable].codes.push_back(code);
}

std::shared_ptr<CodeObject> KernelRegistry::wanted_code(Bytes bytes) const {
  const std::optional<Elf> elf = Elf::open(bytes);
  if (!elf) return nullptr;
  auto code = std::make_shared<CodeObject>();
  bool wanted = false;
  for (const std::string_view name : elf->kernels()) {
    code->kernels.emplace_back(name);
    wanted = wanted || filter_.wants(code->kernels.back(), demangled(code->kernels.back()));
  }
  return wanted ? code : nullptr;
}

bool KernelRegistry::spool(Bytes bytes, CodeObject& code) {
  if (!write_all(spool_, bytes, spooled_)) return false;
  code.offset = spooled_;
  code.size = bytes.size();
  spooled_ += (static_cast<off_t>(bytes.size()) + kPage - 1) / kPage * kPage;
  return true;
}

void KernelRegistry::read_symbols(const hsa::ApiTables& api, hsa::Executable executable) {
  Found found{&api, executable, &filter_, {}, {}};
  api.original(hsa::core::kIterateSymbols)(
      executable,
      [](hsa::Executable, hsa::Symbol symbol, void* data) {
        static_cast<Found*>(data)->add(symbol);
        return hsa::kSuccess;
      },
      &found);
  const std::scoped_lock lock(mutex_);
  ExecutableParts& parts = executables_[executable.handle];
  for (auto& [object, kernel] : found.kernels) {
    for (const auto& code : parts.codes) {
      const auto& names = code->kernels;
      if (code->agent == kernel->agent && std::ranges::find(names, kernel->name) != names.end()) {
        kernel->code = code;
      }
    }
    parts.kernel_objects.push_back(object);
    kernels_[object] = std::move(kernel);
  }
  for (auto& [agent, variable] : found.variables) parts.variables[agent].push_back(std::move(variable));
}

void KernelRegistry::remove_executable(uint64_t executable) {
  const std::scoped_lock lock(mutex_);
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return;
  for (const uint64_t object : found->second.kernel_objects) kernels_.erase(object);
  executables_.erase(found);
}

std::shared_ptr<Kernel> KernelRegistry::find(uint64_t kernel_object) const {
  const std::shared_lock lock(mutex_);
  const auto found = kernels_.find(kernel_object);
  return found == kernels_.end() ? nullptr : found->second;
}

std::vector<Variable> KernelRegistry::variables_of(uint64_t agent) const {
  const std::shared_lock lock(mutex_);
  std::vector<Variable> variables;
  for (const auto& [executable, parts] : executables_) {
    const auto found = parts.variables.find(agent);
    if (found == parts.variables.end()) continue;
    variables.insert(variables.end(), found->second.begin(), found->second.end());
  }
  std::ranges::sort(variables, {}, &Variable::address);
  return variables;
}

MappedFile KernelRegistry::bytes_of(const CodeObject& code) const { return {spool_, code.offset, code.size}; }

}  // namespace rpl::isolate
