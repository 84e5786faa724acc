// The runtime, opened while the program runs: without it the program still starts and can say so.
#pragma once

#include <string>

#include "hsa/abi.h"

namespace rpl::replay {

// hsa_amd_event_t, as far as a memory fault needs it.
struct SystemEvent {
  uint32_t type;
  hsa::Agent agent;
  uint64_t address;
  uint32_t reasons;
};
inline constexpr uint32_t kMemoryFaultEvent = 0;
static_assert(offsetof(SystemEvent, agent) == 8 && offsetof(SystemEvent, address) == 16);

using SystemEventHandler = hsa::Status (*)(const SystemEvent* event, void* data);

struct HsaLibrary {
  // Throws Failure: no_runtime, or no_virtual_memory for one that is too old.
  HsaLibrary();

  std::string path;

  hsa::Status (*init)() = nullptr;
  hsa::Status (*shut_down)() = nullptr;
  hsa::Status (*status_string)(hsa::Status, const char**) = nullptr;
  hsa::Status (*system_get_info)(uint32_t, void*) = nullptr;
  hsa::Status (*iterate_agents)(hsa::Status (*)(hsa::Agent, void*), void*) = nullptr;
  hsa::Status (*agent_get_info)(hsa::Agent, uint32_t, void*) = nullptr;
  hsa::Status (*agent_iterate_isas)(hsa::Agent, hsa::Status (*)(hsa::Isa, void*), void*) = nullptr;
  hsa::Status (*isa_get_info_alt)(hsa::Isa, uint32_t, void*) = nullptr;
  hsa::Status (*iterate_pools)(hsa::Agent, hsa::Status (*)(hsa::Pool, void*), void*) = nullptr;
  hsa::Status (*pool_get_info)(hsa::Pool, uint32_t, void*) = nullptr;
  hsa::Status (*pool_allocate)(hsa::Pool, size_t, uint32_t, void**) = nullptr;
  hsa::Status (*pool_free)(void*) = nullptr;
  hsa::Status (*allow_access)(uint32_t, const hsa::Agent*, const uint32_t*, const void*) = nullptr;
  hsa::Status (*async_copy)(void*, hsa::Agent, const void*, hsa::Agent, size_t, uint32_t, const hsa::Signal*,
                            hsa::Signal) = nullptr;
  hsa::Status (*register_system_event_handler)(SystemEventHandler, void*) = nullptr;
  hsa::Status (*reader_from_memory)(const void*, size_t, hsa::CodeObjectReader*) = nullptr;
  hsa::Status (*reader_destroy)(hsa::CodeObjectReader) = nullptr;
  hsa::Status (*executable_create)(uint32_t, uint32_t, const char*, hsa::Executable*) = nullptr;
  hsa::Status (*executable_load)(hsa::Executable, hsa::Agent, hsa::CodeObjectReader, const char*,
                                 hsa::LoadedCodeObject*) = nullptr;
  hsa::Status (*executable_freeze)(hsa::Executable, const char*) = nullptr;
  hsa::Status (*executable_destroy)(hsa::Executable) = nullptr;
  hsa::Status (*executable_get_symbol)(hsa::Executable, const char*, const hsa::Agent*,
                                       hsa::Symbol*) = nullptr;
  hsa::Status (*symbol_get_info)(hsa::Symbol, uint32_t, void*) = nullptr;
  hsa::Status (*queue_create)(hsa::Agent, uint32_t, uint32_t, hsa::QueueCallback, void*, uint32_t, uint32_t,
                              hsa::Queue**) = nullptr;
  hsa::Status (*queue_destroy)(hsa::Queue*) = nullptr;
  uint64_t (*queue_add_write_index)(const hsa::Queue*, uint64_t) = nullptr;
  hsa::Status (*signal_create)(int64_t, uint32_t, const hsa::Agent*, hsa::Signal*) = nullptr;
  hsa::Status (*signal_destroy)(hsa::Signal) = nullptr;
  void (*signal_store)(hsa::Signal, int64_t) = nullptr;
  int64_t (*signal_wait)(hsa::Signal, uint32_t, int64_t, uint64_t, uint32_t) = nullptr;
  hsa::Status (*profiler_enabled)(hsa::Queue*, int) = nullptr;
  hsa::Status (*dispatch_time)(hsa::Agent, hsa::Signal, hsa::DispatchTime*) = nullptr;
  hsa::Status (*vmem_reserve)(void**, size_t, uint64_t, uint64_t) = nullptr;
  hsa::Status (*vmem_address_free)(void*, size_t) = nullptr;
  hsa::Status (*vmem_handle_create)(hsa::Pool, size_t, uint32_t, uint64_t, hsa::VmemHandle*) = nullptr;
  hsa::Status (*vmem_handle_release)(hsa::VmemHandle) = nullptr;
  hsa::Status (*vmem_map)(void*, size_t, size_t, hsa::VmemHandle, uint64_t) = nullptr;
  hsa::Status (*vmem_unmap)(void*, size_t) = nullptr;
  hsa::Status (*vmem_set_access)(void*, size_t, const hsa::MemoryAccess*, size_t) = nullptr;

  // What the runtime calls a status.
  [[nodiscard]] std::string text_of(hsa::Status status) const;
  // Throws Failure of that kind unless the status is success.
  void require(hsa::Status status, const char* kind, const std::string& what) const;
};

}  // namespace rpl::replay
