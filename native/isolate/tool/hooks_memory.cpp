// Every way to get memory, and to give it back. Nothing here allocates by malloc, and no lock of the tool is
// held while the runtime works.
#include "tool/hooks.h"

namespace rpl::isolate {
namespace {

MemoryMap& memory() { return process()->memory; }
bool watched(hsa::Status status) { return status == hsa::kSuccess && !is_passive(); }
uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// While a snapshot is taken, memory is neither given back nor moved.
void wait_for_snapshot() {
  if (!is_passive()) process()->queues.pass(nullptr, nullptr);
}

void note(const void* pointer, uint64_t size, Kind kind, uint64_t pool = 0, const void* host = nullptr) {
  Allocation allocation;
  allocation.base = address_of(pointer);
  allocation.size = size;
  allocation.kind = kind;
  allocation.pool = pool;
  allocation.host = address_of(host);
  memory().add(allocation);
}

// Gives back by `original`; the record goes first, and comes back when that fails.
template <typename Original>
hsa::Status give_back(void* pointer, Original* original) {
  if (is_passive()) return original(pointer);
  wait_for_snapshot();
  const std::optional<Allocation> record = memory().remove(address_of(pointer));
  const auto status = original(pointer);
  if (status != hsa::kSuccess && record) memory().add(*record);
  return status;
}

hsa::Status pool_allocate(hsa::Pool pool, size_t size, uint32_t flags, void** pointer) {
  const auto status = api().original(hsa::amd::kPoolAllocate)(pool, size, flags, pointer);
  if (watched(status)) note(*pointer, size, Kind::kPool, pool.handle);
  return status;
}
hsa::Status pool_free(void* pointer) { return give_back(pointer, api().original(hsa::amd::kPoolFree)); }

hsa::Status memory_allocate(hsa::Region region, size_t size, void** pointer) {
  const auto status = api().original(hsa::core::kMemoryAllocate)(region, size, pointer);
  if (watched(status)) note(*pointer, size, Kind::kHsaMemory, region.handle);
  return status;
}
hsa::Status memory_free(void* pointer) { return give_back(pointer, api().original(hsa::core::kMemoryFree)); }

hsa::Status memory_lock(void* host, size_t size, hsa::Agent* agents, int count, void** pointer) {
  const auto status = api().original(hsa::amd::kMemoryLock)(host, size, agents, count, pointer);
  if (watched(status)) note(*pointer, size, Kind::kLockedHost, 0, host);
  return status;
}
hsa::Status lock_to_pool(void* host, size_t size, hsa::Agent* agents, int count, hsa::Pool pool,
                         uint32_t flags, void** pointer) {
  const auto status = api().original(hsa::amd::kLockToPool)(host, size, agents, count, pool, flags, pointer);
  if (watched(status)) note(*pointer, size, Kind::kLockedHost, pool.handle, host);
  return status;
}
hsa::Status memory_unlock(void* host) {
  const auto original = api().original(hsa::amd::kMemoryUnlock);
  if (is_passive()) return original(host);
  wait_for_snapshot();
  const std::optional<Allocation> record = memory().remove_locked(address_of(host));
  const auto status = original(host);
  if (status != hsa::kSuccess && record) memory().add(*record);
  return status;
}

hsa::Status interop_map(uint32_t count, hsa::Agent* agents, int handle, uint32_t flags, size_t* size,
                        void** pointer, size_t* metadata_size, const void** metadata) {
  const auto status = api().original(hsa::amd::kInteropMap)(count, agents, handle, flags, size, pointer,
                                                            metadata_size, metadata);
  if (watched(status)) note(*pointer, *size, Kind::kInterop);
  return status;
}
hsa::Status interop_unmap(void* pointer) {
  return give_back(pointer, api().original(hsa::amd::kInteropUnmap));
}

hsa::Status ipc_attach(const hsa::IpcHandle* handle, size_t size, uint32_t count, const hsa::Agent* agents,
                       void** pointer) {
  const auto status = api().original(hsa::amd::kIpcAttach)(handle, size, count, agents, pointer);
  if (watched(status)) note(*pointer, size, Kind::kIpc);
  return status;
}
hsa::Status ipc_detach(void* pointer) { return give_back(pointer, api().original(hsa::amd::kIpcDetach)); }

hsa::Status svm_attributes_set(void* pointer, size_t size, hsa::SvmAttribute* attributes, size_t count) {
  const auto status = api().original(hsa::amd::kSvmAttributesSet)(pointer, size, attributes, count);
  if (!watched(status)) return status;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t kind = attributes[i].attribute;
    if (kind == hsa::kSvmAgentAccessible || kind == hsa::kSvmAccessibleInPlace) {
      memory().give_svm(address_of(pointer), size);
    } else if (kind == hsa::kSvmNoAccess) {
      memory().take_svm(address_of(pointer), size);
    }
  }
  return status;
}

hsa::Status vmem_reserve(void** pointer, size_t size, uint64_t address, uint64_t flags) {
  const auto status = api().original(hsa::amd::kVmemReserve)(pointer, size, address, flags);
  if (watched(status)) memory().reserve(address_of(*pointer), size);
  return status;
}
hsa::Status vmem_reserve_align(void** pointer, size_t size, uint64_t address, uint64_t alignment,
                               uint64_t flags) {
  const auto original = api().original(hsa::amd::kVmemReserveAlign);
  const auto status = original(pointer, size, address, alignment, flags);
  if (watched(status)) memory().reserve(address_of(*pointer), size);
  return status;
}
hsa::Status vmem_address_free(void* pointer, size_t size) {
  const auto status = api().original(hsa::amd::kVmemAddressFree)(pointer, size);
  if (watched(status)) memory().unreserve(address_of(pointer));
  return status;
}

hsa::Status vmem_handle_create(hsa::Pool pool, size_t size, uint32_t type, uint64_t flags,
                               hsa::VmemHandle* handle) {
  const auto status = api().original(hsa::amd::kVmemHandleCreate)(pool, size, type, flags, handle);
  if (watched(status)) memory().create_handle(handle->handle, pool.handle);
  return status;
}
hsa::Status vmem_handle_release(hsa::VmemHandle handle) {
  const auto status = api().original(hsa::amd::kVmemHandleRelease)(handle);
  if (watched(status)) memory().release_handle(handle.handle);
  return status;
}

hsa::Status vmem_map(void* pointer, size_t size, size_t in_offset, hsa::VmemHandle handle, uint64_t flags) {
  const auto status = api().original(hsa::amd::kVmemMap)(pointer, size, in_offset, handle, flags);
  if (watched(status)) memory().map(address_of(pointer), size, in_offset, handle.handle);
  return status;
}
hsa::Status vmem_unmap(void* pointer, size_t size) {
  wait_for_snapshot();
  const auto status = api().original(hsa::amd::kVmemUnmap)(pointer, size);
  if (watched(status)) memory().unmap(address_of(pointer), size);
  return status;
}
hsa::Status vmem_set_access(void* pointer, size_t size, const hsa::MemoryAccess* access, size_t count) {
  wait_for_snapshot();
  const auto status = api().original(hsa::amd::kVmemSetAccess)(pointer, size, access, count);
  if (watched(status)) memory().set_access(address_of(pointer), size, access, count);
  return status;
}

}  // namespace

void hook_memory(hsa::ApiTables& tables) {
  tables.hook(hsa::amd::kPoolAllocate, &pool_allocate);
  tables.hook(hsa::amd::kPoolFree, &pool_free);
  tables.hook(hsa::core::kMemoryAllocate, &memory_allocate);
  tables.hook(hsa::core::kMemoryFree, &memory_free);
  tables.hook(hsa::amd::kMemoryLock, &memory_lock);
  tables.hook(hsa::amd::kLockToPool, &lock_to_pool);
  tables.hook(hsa::amd::kMemoryUnlock, &memory_unlock);
  tables.hook(hsa::amd::kInteropMap, &interop_map);
  tables.hook(hsa::amd::kInteropUnmap, &interop_unmap);
  tables.hook(hsa::amd::kIpcAttach, &ipc_attach);
  tables.hook(hsa::amd::kIpcDetach, &ipc_detach);
  tables.hook(hsa::amd::kSvmAttributesSet, &svm_attributes_set);
  tables.hook(hsa::amd::kVmemReserve, &vmem_reserve);
  tables.hook(hsa::amd::kVmemReserveAlign, &vmem_reserve_align);
  tables.hook(hsa::amd::kVmemAddressFree, &vmem_address_free);
  tables.hook(hsa::amd::kVmemHandleCreate, &vmem_handle_create);
  tables.hook(hsa::amd::kVmemHandleRelease, &vmem_handle_release);
  tables.hook(hsa::amd::kVmemMap, &vmem_map);
  tables.hook(hsa::amd::kVmemUnmap, &vmem_unmap);
  tables.hook(hsa::amd::kVmemSetAccess, &vmem_set_access);
}

}  // namespace rpl::isolate
