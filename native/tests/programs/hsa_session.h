// The least that a program of plain HSA needs: agents, pools, kernels of a file, dispatches, copies.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CHECK(call)                                                                  \
  do {                                                                               \
    const hsa_status_t status_ = (call);                                             \
    if (status_ != HSA_STATUS_SUCCESS) {                                             \
      std::fprintf(stderr, "%s:%d: %s: 0x%x\n", __FILE__, __LINE__, #call, status_); \
      std::exit(70);                                                                 \
    }                                                                                \
  } while (false)

constexpr uint64_t kForever = UINT64_MAX;

struct Gpu {
  hsa_agent_t agent{};
  hsa_amd_memory_pool_t pool{};  // device memory, coarse-grained
};

class HsaSession {
 public:
  HsaSession() {
    CHECK(hsa_init());
    CHECK(hsa_iterate_agents(
        [](hsa_agent_t agent, void* data) {
          static_cast<HsaSession*>(data)->add(agent);
          return HSA_STATUS_SUCCESS;
        },
        this));
  }
  ~HsaSession() { CHECK(hsa_shut_down()); }

  const Gpu& gpu(size_t number = 0) const { return gpus_.at(number); }
  size_t gpus() const { return gpus_.size(); }
  hsa_agent_t cpu() const { return cpu_; }

  template <typename T>
  T* device_array(size_t count, size_t number = 0) const {
    void* memory = nullptr;
    CHECK(hsa_amd_memory_pool_allocate(gpu(number).pool, count * sizeof(T), 0, &memory));
    return static_cast<T*>(memory);
  }
  // Host memory that all GPUs reach; kernel arguments may lie in it.
  template <typename T>
  T* host_array(size_t count) const {
    void* memory = nullptr;
    CHECK(hsa_amd_memory_pool_allocate(kernarg_pool_, count * sizeof(T), 0, &memory));
    std::vector<hsa_agent_t> agents;
    for (const Gpu& one : gpus_) agents.push_back(one.agent);
    CHECK(hsa_amd_agents_allow_access(static_cast<uint32_t>(agents.size()), agents.data(), nullptr, memory));
    return static_cast<T*>(memory);
  }
  static void free(void* memory) { CHECK(hsa_amd_memory_pool_free(memory)); }

  // By a DMA engine.
  static void copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent, size_t bytes) {
    hsa_signal_t done{};
    CHECK(hsa_signal_create(1, 0, nullptr, &done));
    CHECK(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, bytes, 0, nullptr, done));
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, kForever, HSA_WAIT_STATE_BLOCKED);
    CHECK(hsa_signal_destroy(done));
  }

 private:
  void add(hsa_agent_t agent) {
    hsa_device_type_t type{};
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU) {
      gpus_.push_back({agent, pool_of(agent, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)});
    } else if (type == HSA_DEVICE_TYPE_CPU) {
      cpu_ = agent;
      kernarg_pool_ = pool_of(agent, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
    }
  }
  static hsa_amd_memory_pool_t pool_of(hsa_agent_t agent, uint32_t flag) {
    struct Wanted {
      uint32_t flag;
      hsa_amd_memory_pool_t pool;
    } wanted{flag, {}};
    CHECK(hsa_amd_agent_iterate_memory_pools(
        agent,
        [](hsa_amd_memory_pool_t pool, void* data) {
          auto* search = static_cast<Wanted*>(data);
          hsa_amd_segment_t segment{};
          uint32_t flags = 0;
          CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
          if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
          CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
          if ((flags & search->flag) != 0 && search->pool.handle == 0) search->pool = pool;
          return HSA_STATUS_SUCCESS;
        },
        &wanted));
    return wanted.pool;
  }

  std::vector<Gpu> gpus_;
  hsa_agent_t cpu_{};
  hsa_amd_memory_pool_t kernarg_pool_{};
};

// Fine-grained memory of the host, for hsa_memory_allocate.
inline hsa_region_t host_region(HsaSession& session) {
  hsa_region_t found{};
  CHECK(hsa_agent_iterate_regions(
      session.cpu(),
      [](hsa_region_t region, void* data) {
        uint32_t flags = 0;
        CHECK(hsa_region_get_info(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags));
        if ((flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED) != 0) *static_cast<hsa_region_t*>(data) = region;
        return HSA_STATUS_SUCCESS;
      },
      &found));
  return found;
}

// A code object file, loaded for one GPU.
class Kernels {
 public:
  Kernels(const std::string& file, hsa_agent_t agent) : agent_(agent) {
    std::ifstream stream(file, std::ios::binary);
    code_.assign(std::istreambuf_iterator<char>(stream), {});
    CHECK(hsa_code_object_reader_create_from_memory(code_.data(), code_.size(), &reader_));
    load();
  }
  Kernels(hsa_file_t file, hsa_agent_t agent) : agent_(agent) {
    CHECK(hsa_code_object_reader_create_from_file(file, &reader_));
    load();
  }
  ~Kernels() {
    CHECK(hsa_executable_destroy(executable_));
    CHECK(hsa_code_object_reader_destroy(reader_));
  }

  // A packet that runs a kernel over `count` work-items.
  hsa_kernel_dispatch_packet_t packet(const std::string& name, uint32_t count, void* kernarg) const {
    const hsa_executable_symbol_t symbol = this->symbol(name + ".kd");
    hsa_kernel_dispatch_packet_t packet{};
    packet.setup = 1;
    packet.workgroup_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = count;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernarg_address = kernarg;
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                         &packet.kernel_object));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
                                         &packet.group_segment_size));
    return packet;
  }
  hsa_executable_symbol_t symbol(const std::string& name) const {
    hsa_executable_symbol_t symbol{};
    CHECK(hsa_executable_get_symbol_by_name(executable_, name.c_str(), &agent_, &symbol));
    return symbol;
  }

 private:
  void load() {
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr,
                                    &executable_));
    CHECK(hsa_executable_load_agent_code_object(executable_, agent_, reader_, nullptr, nullptr));
    CHECK(hsa_executable_freeze(executable_, nullptr));
  }

  hsa_agent_t agent_;
  std::vector<char> code_;
  hsa_code_object_reader_t reader_{};
  hsa_executable_t executable_{};
};

class Queue {
 public:
  explicit Queue(hsa_agent_t agent) {
    CHECK(
        hsa_queue_create(agent, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue_));
    CHECK(hsa_amd_profiling_set_profiler_enabled(queue_, 1));
    CHECK(hsa_signal_create(0, 0, nullptr, &done_));
  }
  ~Queue() {
    CHECK(hsa_signal_destroy(done_));
    CHECK(hsa_queue_destroy(queue_));
  }

  void submit(const hsa_kernel_dispatch_packet_t& packet) { submit(std::vector{packet}); }
  // One doorbell for all.
  void submit(std::vector<hsa_kernel_dispatch_packet_t> packets) {
    const uint64_t first = hsa_queue_add_write_index_relaxed(queue_, packets.size());
    const uint64_t last = first + packets.size() - 1;
    while (last - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) {
    }
    for (uint64_t index = first; index <= last; ++index) write(packets[index - first], index);
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(last));
  }
  // False when it did not end in time.
  bool wait(uint64_t timeout_ns = kForever) const {
    uint64_t hz = 0;
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &hz));
    const uint64_t ticks = timeout_ns == kForever ? kForever : timeout_ns * (hz / 1000000) / 1000;
    return hsa_signal_wait_scacquire(done_, HSA_SIGNAL_CONDITION_LT, 1, ticks, HSA_WAIT_STATE_BLOCKED) < 1;
  }
  uint64_t last_duration(hsa_agent_t agent) const {
    hsa_amd_profiling_dispatch_time_t time{};
    CHECK(hsa_amd_profiling_get_dispatch_time(agent, done_, &time));
    return time.end - time.start;
  }

 private:
  void write(hsa_kernel_dispatch_packet_t& packet, uint64_t index) {
    hsa_signal_add_relaxed(done_, 1);
    packet.completion_signal = done_;
    auto* slot = static_cast<hsa_kernel_dispatch_packet_t*>(queue_->base_address) + index % queue_->size;
    constexpr uint32_t kHeader = (HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE) |
                                 (1U << HSA_PACKET_HEADER_BARRIER) |
                                 (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
                                 (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    constexpr size_t kFirst = sizeof(uint32_t);  // header and setup last, together
    std::memcpy(reinterpret_cast<char*>(slot) + kFirst, reinterpret_cast<char*>(&packet) + kFirst,
                sizeof(packet) - kFirst);
    const uint32_t head = kHeader | (static_cast<uint32_t>(packet.setup) << 16);
    std::atomic_ref(*reinterpret_cast<uint32_t*>(slot)).store(head, std::memory_order_release);
  }

  hsa_queue_t* queue_ = nullptr;
  hsa_signal_t done_{};
};
