#include "made_up_runtime.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace made_up {
namespace {

using namespace rpl::hsa;

Runtime* current = nullptr;

constexpr uint64_t kMegahertz = 1'000'000;
constexpr size_t kPage = 4096;

SignalMemory* memory_of(Signal signal) { return reinterpret_cast<SignalMemory*>(signal.handle); }
void add_to(Signal signal, int64_t amount) {
  if (signal.handle != 0) std::atomic_ref(memory_of(signal)->value).fetch_add(amount);
}

Status system_get_info(uint32_t what, void* value) {
  if (what == kSystemTimestampFrequency) *static_cast<uint64_t*>(value) = kMegahertz;
  if (what == kSystemVersionMajor || what == kSystemVersionMinor) *static_cast<uint16_t*>(value) = 1;
  return what == kSystemBuildVersion ? kError : kSuccess;
}
Status iterate_agents(Status (*visit)(Agent, void*), void* data) {
  visit(kCpu, data);
  return visit(kGpu, data);
}
Status agent_get_info(Agent agent, uint32_t what, void* value) {
  const bool gpu = agent.handle == kGpu.handle;
  if (what == kAgentName) std::memcpy(value, gpu ? "gfx942" : "cpu", gpu ? 7 : 4);
  if (what == kAgentDevice) *static_cast<uint32_t*>(value) = gpu ? kDeviceGpu : kDeviceCpu;
  if (what == kAgentWavefrontSize) *static_cast<uint32_t*>(value) = 64;
  return kSuccess;
}
Status iterate_isas(Agent, Status (*visit)(Isa, void*), void* data) { return visit({1}, data); }
Status isa_get_info(Isa, uint32_t what, void* value) {
  constexpr const char* kName = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-";
  if (what == kIsaNameLength) *static_cast<uint32_t*>(value) = static_cast<uint32_t>(std::strlen(kName)) + 1;
  if (what == kIsaName) std::memcpy(value, kName, std::strlen(kName) + 1);
  return kSuccess;
}

Status queue_create(Agent, uint32_t, uint32_t, QueueCallback, void*, uint32_t, uint32_t, Queue** queue) {
  *queue = &current->queue;
  return kSuccess;
}
Status queue_destroy(Queue*) { return kSuccess; }
Status intercept_register(Queue*, PacketHandler handler, void* data) {
  current->handler = handler;
  current->handler_data = data;
  return kSuccess;
}
Status set_profiler_enabled(Queue*, int) { return kSuccess; }
Status get_dispatch_time(Agent, Signal signal, DispatchTime* time) {
  *time = {memory_of(signal)->start_ticks, memory_of(signal)->end_ticks};
  return kSuccess;
}

Status signal_create(int64_t value, uint32_t, const Agent*, Signal* signal) {
  *signal = make_signal(value);
  ++current->live_signals;
  return kSuccess;
}
Status signal_destroy(Signal signal) {
  --current->live_signals;
  delete memory_of(signal);
  return kSuccess;
}
void signal_store(Signal signal, int64_t value) { std::atomic_ref(memory_of(signal)->value).store(value); }
int64_t signal_wait(Signal signal, uint32_t, int64_t below, uint64_t ticks, uint32_t) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(ticks);
  while (value_of(signal) >= below && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return value_of(signal);
}
void signal_subtract(Signal signal, int64_t amount) { add_to(signal, -amount); }

Status allocate(Agent owner, size_t bytes, void** pointer) {
  *pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  current->blocks[reinterpret_cast<uint64_t>(*pointer)] = {bytes, owner};
  return kSuccess;
}
Status pool_allocate(Pool pool, size_t bytes, uint32_t, void** pointer) {
  return allocate(pool.handle == kDevicePool.handle ? kGpu : kCpu, bytes, pointer);
}
Status memory_allocate(Region, size_t bytes, void** pointer) { return allocate(kCpu, bytes, pointer); }
Status release(void* pointer) {
  if (current->blocks.erase(reinterpret_cast<uint64_t>(pointer)) == 0) return kError;
  std::free(pointer);
  return kSuccess;
}
Status iterate_pools(Agent agent, Status (*visit)(Pool, void*), void* data) {
  return visit(agent.handle == kGpu.handle ? kDevicePool : kHostPool, data);
}
Status pool_get_info(Pool pool, uint32_t what, void* value) {
  if (what == kPoolSegment) *static_cast<uint32_t*>(value) = 0;
  if (what == kPoolAllocAllowed) *static_cast<bool*>(value) = true;
  if (what == kPoolFlags) {
    *static_cast<uint32_t*>(value) =
        pool.handle == kDevicePool.handle ? kPoolCoarseGrained : kPoolFineGrained;
  }
  return kSuccess;
}
Status allow_access(uint32_t, const Agent*, const uint32_t*, const void*) { return kSuccess; }
Status async_copy(void* to, Agent, const void* from, Agent, size_t bytes, uint32_t, const Signal*,
                  Signal done) {
  if (current->fails_copies) return kError;
  std::memcpy(to, from, bytes);
  add_to(done, -1);
  return kSuccess;
}
Status pointer_info(const void* pointer, PointerInfo* info, void* (*allocate_list)(size_t), uint32_t* count,
                    Agent** agents) {
  const auto found = current->blocks.find(reinterpret_cast<uint64_t>(pointer));
  info->type = found == current->blocks.end() ? kPointerUnknown : kPointerHsa;
  if (found == current->blocks.end()) return kSuccess;
  info->agent_base = const_cast<void*>(pointer);
  info->bytes = found->second.bytes;
  info->owner = found->second.owner;
  *count = 1;
  *agents = static_cast<Agent*>(allocate_list(sizeof(Agent)));
  **agents = kGpu;
  return kSuccess;
}

Status reader_from_memory(const void*, size_t, CodeObjectReader* reader) {
  reader->handle = 1;
  return kSuccess;
}
Status reader_destroy(CodeObjectReader) { return kSuccess; }
Status load_code(Executable, Agent, CodeObjectReader, const char*, LoadedCodeObject*) { return kSuccess; }
Status freeze(Executable, const char*) { return kSuccess; }
Status executable_destroy(Executable) { return kSuccess; }
Status iterate_symbols(Executable executable, Status (*visit)(Executable, Symbol, void*), void* data) {
  for (size_t i = 0; i < current->symbols.size(); ++i) visit(executable, {i}, data);
  return kSuccess;
}
Status symbol_get_info(Symbol symbol, uint32_t what, void* value) {
  const Runtime::Symbol& one = current->symbols.at(symbol.handle);
  const auto put = [value](auto number) { std::memcpy(value, &number, sizeof(number)); };
  if (what == kSymbolType) put(one.kind);
  if (what == kSymbolNameLength) put(static_cast<uint32_t>(one.name.size()));
  if (what == kSymbolName) std::memcpy(value, one.name.data(), one.name.size());
  if (what == kSymbolAgent) put(kGpu.handle);
  if (what == kSymbolKernelObject || what == kSymbolVariableAddress) put(one.address);
  if (what == kSymbolKernargSegmentSize || what == kSymbolVariableSize) put(one.size);
  return kSuccess;
}

// The hardware.
void write_packets(const void* packets, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto& packet = static_cast<const DispatchPacket*>(packets)[i];
    const uint16_t type = packet.header & kPacketTypeMask;
    if (type == kPacketBarrierAnd && current->loses_barriers) continue;
    if (type == kPacketDispatch) {
      current->kernels_run.push_back(packet.kernel_object);
      if (const auto kernel = current->kernels.find(packet.kernel_object); kernel != current->kernels.end()) {
        kernel->second(packet);
      }
      if (packet.completion_signal.handle != 0) {
        memory_of(packet.completion_signal)->start_ticks = 1000;
        memory_of(packet.completion_signal)->end_ticks = 1500;
      }
    }
    add_to(packet.completion_signal, -1);
  }
}

}  // namespace

Runtime& runtime() { return *current; }

Signal make_signal(int64_t value) {
  auto* const memory = new SignalMemory{};
  memory->value = value;
  return {reinterpret_cast<uint64_t>(memory)};
}

int64_t value_of(Signal signal) { return std::atomic_ref(memory_of(signal)->value).load(); }

Runtime::Runtime(uint32_t major, uint32_t core_bytes, uint32_t amd_bytes)
    : core_(core_bytes), amd_(amd_bytes) {
  current = this;
  const TableVersion core_version{major, core_bytes, 0, 0}, amd_version{major, amd_bytes, 1, 0};
  std::memcpy(core_.data(), &core_version, sizeof(core_version));
  std::memcpy(amd_.data(), &amd_version, sizeof(amd_version));
  tables_ = {{3, sizeof(ApiTable), 0, 0}, core_.data(), amd_.data()};
  queue.size = 64;
  queue.id = 7;
  set(core::kSystemGetInfo, &system_get_info);
  set(core::kIterateAgents, &iterate_agents);
  set(core::kAgentGetInfo, &agent_get_info);
  set(core::kAgentIterateIsas, &iterate_isas);
  set(core::kIsaGetInfo, &isa_get_info);
  set(core::kQueueCreate, &queue_create);
  set(core::kQueueDestroy, &queue_destroy);
  set(core::kMemoryAllocate, &memory_allocate);
  set(core::kMemoryFree, &release);
  set(core::kSignalCreate, &signal_create);
  set(core::kSignalDestroy, &signal_destroy);
  set(core::kSignalStoreRelease, &signal_store);
  set(core::kSignalWait, &signal_wait);
  set(core::kSignalSubtract, &signal_subtract);
  set(core::kReaderFromMemory, &reader_from_memory);
  set(core::kReaderDestroy, &reader_destroy);
  set(core::kLoadAgentCodeObject, &load_code);
  set(core::kExecutableFreeze, &freeze);
  set(core::kExecutableDestroy, &executable_destroy);
  set(core::kIterateSymbols, &iterate_symbols);
  set(core::kSymbolGetInfo, &symbol_get_info);
  set(amd::kSetProfilerEnabled, &set_profiler_enabled);
  set(amd::kGetDispatchTime, &get_dispatch_time);
  set(amd::kPoolGetInfo, &pool_get_info);
  set(amd::kIteratePools, &iterate_pools);
  set(amd::kPoolAllocate, &pool_allocate);
  set(amd::kPoolFree, &release);
  set(amd::kAsyncCopy, &async_copy);
  set(amd::kAllowAccess, &allow_access);
  set(amd::kPointerInfo, &pointer_info);
  set(amd::kInterceptCreate, &queue_create);
  set(amd::kInterceptRegister, &intercept_register);
}

Runtime::~Runtime() {
  for (const auto& [address, block] : blocks) std::free(reinterpret_cast<void*>(address));
  current = nullptr;
}

void Runtime::submit(const std::vector<DispatchPacket>& packets) const {
  if (handler == nullptr) {
    write_packets(packets.data(), packets.size());
    return;
  }
  handler(packets.data(), packets.size(), 0, handler_data, &write_packets);
}

}  // namespace made_up
