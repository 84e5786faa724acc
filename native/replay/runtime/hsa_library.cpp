#include "runtime/hsa_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "plan/failure.h"

namespace rpl::replay {
namespace {

constexpr const char* kName = "libhsa-runtime64.so.1";

void* opened() {
  std::vector<std::string> places = {kName};
  for (const char* variable : {"ROCM_PATH", "ROCM_HOME"}) {
    if (const char* root = std::getenv(variable)) places.push_back(std::string(root) + "/lib/" + kName);
  }
  places.push_back(std::string("/opt/rocm/lib/") + kName);
  std::string first;
  for (const std::string& place : places) {
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
    if (first.empty()) {
      if (const char* reason = dlerror()) first = reason;
    }
  }
  throw Failure("no_runtime", "there is no ROCr runtime", first,
                "install ROCm, or set ROCM_PATH to where it is");
}

template <typename F>
void find(void* library, const char* name, const char* kind, F*& function) {
  const void* found = dlsym(library, name);
  if (found == nullptr) {
    throw Failure(kind, std::string("the runtime has no function ") + name, "it is older than ROCm 6",
                  "use ROCm 6.0 or later");
  }
  std::memcpy(static_cast<void*>(&function), static_cast<const void*>(&found), sizeof(found));
}

}  // namespace

HsaLibrary::HsaLibrary() {
  void* library = opened();
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr) path = map->l_name;
  const auto get = [library](const char* name, auto*& function) {
    find(library, name, "no_runtime", function);
  };
  get("hsa_init", init);
  get("hsa_shut_down", shut_down);
  get("hsa_status_string", status_string);
  get("hsa_system_get_info", system_get_info);
  get("hsa_iterate_agents", iterate_agents);
  get("hsa_agent_get_info", agent_get_info);
  get("hsa_agent_iterate_isas", agent_iterate_isas);
  get("hsa_isa_get_info_alt", isa_get_info_alt);
  get("hsa_amd_agent_iterate_memory_pools", iterate_pools);
  get("hsa_amd_memory_pool_get_info", pool_get_info);
  get("hsa_amd_memory_pool_allocate", pool_allocate);
  get("hsa_amd_memory_pool_free", pool_free);
  get("hsa_amd_agents_allow_access", allow_access);
  get("hsa_amd_memory_async_copy", async_copy);
  get("hsa_amd_register_system_event_handler", register_system_event_handler);
  get("hsa_code_object_reader_create_from_memory", reader_from_memory);
  get("hsa_code_object_reader_destroy", reader_destroy);
  get("hsa_executable_create_alt", executable_create);
  get("hsa_executable_load_agent_code_object", executable_load);
  get("hsa_executable_freeze", executable_freeze);
  get("hsa_executable_destroy", executable_destroy);
  get("hsa_executable_get_symbol_by_name", executable_get_symbol);
  get("hsa_executable_symbol_get_info", symbol_get_info);
  get("hsa_queue_create", queue_create);
  get("hsa_queue_destroy", queue_destroy);
  get("hsa_queue_add_write_index_relaxed", queue_add_write_index);
  get("hsa_signal_create", signal_create);
  get("hsa_signal_destroy", signal_destroy);
  get("hsa_signal_store_screlease", signal_store);
  get("hsa_signal_wait_scacquire", signal_wait);
  get("hsa_amd_profiling_set_profiler_enabled", profiler_enabled);
  get("hsa_amd_profiling_get_dispatch_time", dispatch_time);
  const auto get_vmem = [library](const char* name, auto*& function) {
    find(library, name, "no_virtual_memory", function);
  };
  get_vmem("hsa_amd_vmem_address_reserve", vmem_reserve);
  get_vmem("hsa_amd_vmem_address_free", vmem_address_free);
  get_vmem("hsa_amd_vmem_handle_create", vmem_handle_create);
  get_vmem("hsa_amd_vmem_handle_release", vmem_handle_release);
  get_vmem("hsa_amd_vmem_map", vmem_map);
  get_vmem("hsa_amd_vmem_unmap", vmem_unmap);
  get_vmem("hsa_amd_vmem_set_access", vmem_set_access);
}

std::string HsaLibrary::text_of(hsa::Status status) const {
  const char* text = nullptr;
  if (status_string(status, &text) == hsa::kSuccess && text != nullptr) return text;
  return "status " + std::to_string(status);
}

void HsaLibrary::require(hsa::Status status, const char* kind, const std::string& what) const {
  if (status != hsa::kSuccess) throw Failure(kind, what, text_of(status));
}

}  // namespace rpl::replay
