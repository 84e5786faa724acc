#include "executor/shadow_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

namespace softkfd {
namespace {

// The table's view of memory with what the callback needs behind it.
struct ShadowMemory {
  softkfd_memory table;
  const PageTable* memory;
  std::optional<GpuFault>* fault;
};

void* at(const softkfd_memory* table, uint64_t address, uint64_t bytes, int writes) {
  const auto* shadow = reinterpret_cast<const ShadowMemory*>(table);
  try {
    return shadow->memory->at(address, bytes, writes != 0 ? Access::kWrite : Access::kRead);
  } catch (const GpuFault& fault) {
    *shadow->fault = fault;  // no exception passes through functions of another library
    return nullptr;
  }
}

}  // namespace

ShadowLibrary::ShadowLibrary(const softkfd_shadow* table) {
  for (; table->kernel != nullptr; ++table) functions_.emplace(table->kernel, table->run);
}

std::unique_ptr<ShadowLibrary> ShadowLibrary::load(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* table = library == nullptr ? nullptr : dlsym(library, "softkfd_shadows");
  if (table == nullptr) throw std::runtime_error(dlerror());
  return std::make_unique<ShadowLibrary>(static_cast<const softkfd_shadow*>(table));
}

bool ShadowLibrary::run(const Launch& launch, const PageTable& memory) {
  const auto found = functions_.find(launch.kernel);
  if (found == functions_.end()) return false;
  std::vector<std::byte> kernarg(launch.kernarg_bytes);
  memory.read(launch.kernarg, kernarg.data(), kernarg.size());
  softkfd_launch given{};
  given.gpu = launch.gpu;
  std::ranges::copy(launch.grid, given.grid);
  std::ranges::copy(launch.workgroup, given.workgroup);
  given.group_bytes = launch.group_bytes;
  given.private_bytes = launch.private_bytes;
  given.kernarg = kernarg.data();
  given.kernarg_bytes = launch.kernarg_bytes;
  std::optional<GpuFault> fault;
  const ShadowMemory shadow{{at}, &memory, &fault};
  found->second(&given, &shadow.table);
  if (fault) throw GpuFault(*fault);
  return true;
}

}  // namespace softkfd
