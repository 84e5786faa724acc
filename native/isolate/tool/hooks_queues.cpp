#include "tool/hooks.h"

namespace rpl::isolate {
namespace {

void watch(hsa::Queue* queue, hsa::Agent agent, uint32_t type) {
  // NOLINTNEXTLINE(misc-const-correctness): the runtime hands it back without const
  void* const record = process()->queues.add(queue, agent, type == hsa::kQueueSingle);
  api().original(hsa::amd::kInterceptRegister)(queue, &on_packets, record);
}

hsa::Status create(hsa::Agent agent, uint32_t size, uint32_t type, hsa::QueueCallback callback, void* data,
                   uint32_t private_bytes, uint32_t group_bytes, hsa::Queue** queue) {
  const auto intercept = api().original(hsa::amd::kInterceptCreate);
  const auto plain = api().original(hsa::core::kQueueCreate);
  if (is_passive()) return plain(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  const auto status = intercept(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  // What can't be watched is still the program's: its launches go unseen.
  if (status != hsa::kSuccess)
    return plain(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  watch(*queue, agent, type);
  return status;
}

// Other tools make such queues; the tool's handler is the first, so that it sees what goes to the hardware.
hsa::Status intercept_create(hsa::Agent agent, uint32_t size, uint32_t type, hsa::QueueCallback callback,
                             void* data, uint32_t private_bytes, uint32_t group_bytes, hsa::Queue** queue) {
  const auto intercept = api().original(hsa::amd::kInterceptCreate);
  const auto status = intercept(agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status != hsa::kSuccess || is_passive()) return status;
  watch(*queue, agent, type);
  return status;
}

hsa::Status intercept_register(hsa::Queue* queue, hsa::PacketHandler handler, void* data) {
  return api().original(hsa::amd::kInterceptRegister)(queue, handler, data);
}

hsa::Status destroy(hsa::Queue* queue) {
  if (!is_passive()) {
    process()->queues.pass(nullptr, nullptr);
    process()->queues.remove(queue);
  }
  return api().original(hsa::core::kQueueDestroy)(queue);
}

hsa::Status set_profiler_enabled(hsa::Queue* queue, int enable) {
  if (!is_passive()) {
    if (QueueRecord* const record = process()->queues.find(queue)) record->profiled = enable != 0;
  }
  return api().original(hsa::amd::kSetProfilerEnabled)(queue, enable);
}

const hsa::DispatchPacket* packet_at(const void* packets, uint64_t number) {
  return static_cast<const hsa::DispatchPacket*>(packets) + number;
}

// Counts the launch; the kernel when it is the one that is wanted.
std::shared_ptr<Kernel> look_at(Process& state, const hsa::DispatchPacket& packet, Launch& launch) {
  if ((packet.header & hsa::kPacketTypeMask) != hsa::kPacketDispatch) return nullptr;
  launch.launch_index = state.status.launches.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<Kernel> kernel = state.registry.find(packet.kernel_object);
  if (!kernel) return nullptr;
  if (!kernel->launched.load(std::memory_order_relaxed) && !kernel->launched.exchange(true)) {
    state.status.saw_kernel(kernel->name, kernel->readable);
  }
  if (!kernel->wanted) return nullptr;
  launch.match_index = state.status.matches.fetch_add(1, std::memory_order_relaxed);
  if (launch.match_index != state.settings.dispatch || state.taken.exchange(true)) return nullptr;
  return kernel;
}

}  // namespace

void on_packets(const void* packets, uint64_t count, uint64_t user_index, void* data,
                hsa::PacketWriter writer) {
  Process* const state = process();
  auto* const record = static_cast<QueueRecord*>(data);
  if (state != nullptr && !is_passive()) {
    state->queues.pass(record, writer);
    record->packets.fetch_add(count, std::memory_order_relaxed);
  }
  if (state == nullptr || is_passive() || state->taken.load(std::memory_order_relaxed)) {
    writer(packets, count);
    return;
  }
  uint64_t first = 0;  // that was not submitted yet
  for (uint64_t i = 0; i < count; ++i) {
    Launch launch{*packet_at(packets, i), nullptr, record, writer, user_index + i, i, count, 0, 0};
    launch.kernel = look_at(*state, launch.packet, launch);
    if (!launch.kernel) continue;
    if (i > first) writer(packet_at(packets, first), i - first);
    capture_launch(*state, launch);
    first = i + 1;
  }
  if (count > first) writer(packet_at(packets, first), count - first);
}

void hook_queues(hsa::ApiTables& tables) {
  tables.hook(hsa::core::kQueueCreate, &create);
  tables.hook(hsa::core::kQueueDestroy, &destroy);
  tables.hook(hsa::amd::kInterceptCreate, &intercept_create);
  tables.hook(hsa::amd::kInterceptRegister, &intercept_register);
  tables.hook(hsa::amd::kSetProfilerEnabled, &set_profiler_enabled);
}

}  // namespace rpl::isolate
