// Compiled only: what native/isolate declares of HSA is what the headers of a real runtime say.
#define AMD_INTERNAL_BUILD  // the trace header then needs no other folder
#include <hsa.h>
#include <hsa_api_trace.h>
#include <hsa_ext_amd.h>

#include "hsa/api_tables.h"

#define SAME(slot, table, function)                               \
  static_assert((slot).offset == offsetof(table, function##_fn)); \
  static_assert(sizeof(table::function##_fn) == sizeof(void*))

namespace core = rpl::hsa::core;
namespace amd = rpl::hsa::amd;

SAME(core::kSystemGetInfo, CoreApiTable, hsa_system_get_info);
SAME(core::kIterateAgents, CoreApiTable, hsa_iterate_agents);
SAME(core::kAgentGetInfo, CoreApiTable, hsa_agent_get_info);
SAME(core::kQueueCreate, CoreApiTable, hsa_queue_create);
SAME(core::kQueueDestroy, CoreApiTable, hsa_queue_destroy);
SAME(core::kQueueLoadReadIndex, CoreApiTable, hsa_queue_load_read_index_scacquire);
SAME(core::kQueueLoadWriteIndex, CoreApiTable, hsa_queue_load_write_index_relaxed);
SAME(core::kQueueCasWriteIndex, CoreApiTable, hsa_queue_cas_write_index_scacq_screl);
SAME(core::kMemoryAllocate, CoreApiTable, hsa_memory_allocate);
SAME(core::kMemoryFree, CoreApiTable, hsa_memory_free);
SAME(core::kSignalCreate, CoreApiTable, hsa_signal_create);
SAME(core::kSignalDestroy, CoreApiTable, hsa_signal_destroy);
SAME(core::kSignalStoreRelease, CoreApiTable, hsa_signal_store_screlease);
SAME(core::kSignalWait, CoreApiTable, hsa_signal_wait_scacquire);
SAME(core::kSignalSubtract, CoreApiTable, hsa_signal_subtract_screlease);
SAME(core::kExecutableDestroy, CoreApiTable, hsa_executable_destroy);
SAME(core::kExecutableFreeze, CoreApiTable, hsa_executable_freeze);
SAME(core::kSymbolGetInfo, CoreApiTable, hsa_executable_symbol_get_info);
SAME(core::kIterateSymbols, CoreApiTable, hsa_executable_iterate_symbols);
SAME(core::kAgentIterateIsas, CoreApiTable, hsa_agent_iterate_isas);
SAME(core::kIsaGetInfo, CoreApiTable, hsa_isa_get_info_alt);
SAME(core::kReaderFromFile, CoreApiTable, hsa_code_object_reader_create_from_file);
SAME(core::kReaderFromMemory, CoreApiTable, hsa_code_object_reader_create_from_memory);
SAME(core::kReaderDestroy, CoreApiTable, hsa_code_object_reader_destroy);
SAME(core::kLoadAgentCodeObject, CoreApiTable, hsa_executable_load_agent_code_object);
SAME(amd::kSetProfilerEnabled, AmdExtTable, hsa_amd_profiling_set_profiler_enabled);
SAME(amd::kGetDispatchTime, AmdExtTable, hsa_amd_profiling_get_dispatch_time);
SAME(amd::kPoolGetInfo, AmdExtTable, hsa_amd_memory_pool_get_info);
SAME(amd::kIteratePools, AmdExtTable, hsa_amd_agent_iterate_memory_pools);
SAME(amd::kPoolAllocate, AmdExtTable, hsa_amd_memory_pool_allocate);
SAME(amd::kPoolFree, AmdExtTable, hsa_amd_memory_pool_free);
SAME(amd::kAsyncCopy, AmdExtTable, hsa_amd_memory_async_copy);
SAME(amd::kAllowAccess, AmdExtTable, hsa_amd_agents_allow_access);
SAME(amd::kMemoryLock, AmdExtTable, hsa_amd_memory_lock);
SAME(amd::kMemoryUnlock, AmdExtTable, hsa_amd_memory_unlock);
SAME(amd::kInteropMap, AmdExtTable, hsa_amd_interop_map_buffer);
SAME(amd::kInteropUnmap, AmdExtTable, hsa_amd_interop_unmap_buffer);
SAME(amd::kPointerInfo, AmdExtTable, hsa_amd_pointer_info);
SAME(amd::kIpcAttach, AmdExtTable, hsa_amd_ipc_memory_attach);
SAME(amd::kIpcDetach, AmdExtTable, hsa_amd_ipc_memory_detach);
SAME(amd::kInterceptCreate, AmdExtTable, hsa_amd_queue_intercept_create);
SAME(amd::kInterceptRegister, AmdExtTable, hsa_amd_queue_intercept_register);
SAME(amd::kLockToPool, AmdExtTable, hsa_amd_memory_lock_to_pool);
SAME(amd::kSvmAttributesSet, AmdExtTable, hsa_amd_svm_attributes_set);
SAME(amd::kVmemReserve, AmdExtTable, hsa_amd_vmem_address_reserve);
SAME(amd::kVmemAddressFree, AmdExtTable, hsa_amd_vmem_address_free);
SAME(amd::kVmemHandleCreate, AmdExtTable, hsa_amd_vmem_handle_create);
SAME(amd::kVmemHandleRelease, AmdExtTable, hsa_amd_vmem_handle_release);
SAME(amd::kVmemMap, AmdExtTable, hsa_amd_vmem_map);
SAME(amd::kVmemUnmap, AmdExtTable, hsa_amd_vmem_unmap);
SAME(amd::kVmemSetAccess, AmdExtTable, hsa_amd_vmem_set_access);
#ifdef HAS_RESERVE_ALIGN
SAME(amd::kVmemReserveAlign, AmdExtTable, hsa_amd_vmem_address_reserve_align);
#endif

static_assert(HSA_CORE_API_TABLE_MAJOR_VERSION == rpl::hsa::kKnownMajor);
static_assert(HSA_AMD_EXT_API_TABLE_MAJOR_VERSION == rpl::hsa::kKnownMajor);
static_assert(offsetof(rpl::hsa::ApiTable, core) == offsetof(HsaApiTable, core_));
static_assert(offsetof(rpl::hsa::ApiTable, amd) == offsetof(HsaApiTable, amd_ext_));
static_assert(offsetof(rpl::hsa::Queue, doorbell_signal) == offsetof(hsa_queue_t, doorbell_signal));
static_assert(sizeof(rpl::hsa::Queue) == sizeof(hsa_queue_t));
static_assert(offsetof(rpl::hsa::DispatchPacket, kernarg_address) ==
              offsetof(hsa_kernel_dispatch_packet_t, kernarg_address));
static_assert(offsetof(rpl::hsa::PointerInfo, owner) == offsetof(hsa_amd_pointer_info_t, agentOwner));
static_assert(offsetof(rpl::hsa::MemoryAccess, agent) ==
              offsetof(hsa_amd_memory_access_desc_t, agent_handle));
static_assert(static_cast<uint32_t>(rpl::hsa::kAgentUuid) == HSA_AMD_AGENT_INFO_UUID);
static_assert(static_cast<uint32_t>(rpl::hsa::kAgentProductName) == HSA_AMD_AGENT_INFO_PRODUCT_NAME);
static_assert(static_cast<uint32_t>(rpl::hsa::kSymbolKernelObject) ==
              HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
static_assert(static_cast<uint64_t>(rpl::hsa::kSvmAgentAccessible) == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE);
