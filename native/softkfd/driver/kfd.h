// The driver as the runtime knows it: /dev/kfd by its ioctl calls, and buffers shared through file
// descriptors.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/gpu.h"
#include "executor/executor.h"
#include "memory/allocations.h"
#include "memory/backing_store.h"
#include "memory/shared_buffers.h"
#include "queue/events.h"
#include "queue/faults.h"
#include "queue/log.h"

namespace softkfd {

struct Settings {
  uint32_t gpus = 1;
  std::string faults;
  std::vector<std::string> shadow_libraries;
  std::string emulator;  // the program rpl-emu; empty: kernels are run by native functions
  bool sanitize = false;  // by the emulator
  bool strict_decode = false;
  bool progress = false;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::string log;
};

class Kfd {
 public:
  // Throws std::exception when a setting can't be honoured. `refuse` ends the process with a sentence.
  Kfd(const Settings& settings, const std::function<void(const std::string&)>& refuse);

  [[nodiscard]] uint32_t gpus() const { return static_cast<uint32_t>(gpus_.size()); }
  // The file that stands for each device of the driver.
  [[nodiscard]] int file() const { return store_.file(); }
  [[nodiscard]] Reservation reservation() const { return faults_.reservation; }

  // By number of the call (_IOC_NR); 0 or a negative error number.
  int call(unsigned number, void* arguments);

  // Where what is at an offset of that file really lies, when that is in another process's file.
  [[nodiscard]] std::optional<SharedBuffers::Place> foreign(uint64_t offset) const {
    return shared_.foreign(offset);
  }

  // Buffers by file descriptor (dma-buf), for libdrm.
  [[nodiscard]] std::shared_ptr<Buffer> buffer_of(int descriptor) const;
  int map_buffer(uint32_t gpu, const Buffer& buffer, uint64_t offset, uint64_t bytes, uint64_t address,
                 bool writable);
  int unmap(uint32_t gpu, uint64_t address, uint64_t bytes);

 private:
  int create_queue(void* arguments);
  int destroy_queue(void* arguments);
  int known_queue(void* arguments);
  static int clocks(void* arguments);
  int create_event(void* arguments);
  int wait_events(void* arguments);
  int apertures(void* arguments) const;
  int allocate(void* arguments);
  int free(void* arguments);
  int map(void* arguments, bool mapped);
  int shared_virtual_memory(void* arguments);
  int available_memory(void* arguments);
  int export_buffer(void* arguments);
  int export_to_process(void* arguments);
  int import_of_process(void* arguments);
  Gpu* gpu_by_id(uint32_t id);

  Log log_;
  Faults faults_;
  Events events_;
  BackingStore store_;
  Allocations allocations_{store_};
  SharedBuffers shared_{store_, allocations_};  // the first to allocate: others find its list there
  Executors executors_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
};

}  // namespace softkfd
