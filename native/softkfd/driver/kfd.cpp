#include "driver/kfd.h"

#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <span>
#include <utility>

#include "executor/blit_kernels.h"
#include "executor/emulator.h"
#include "executor/shadow_library.h"
#include "topology/device.h"

namespace softkfd {
namespace {

constexpr uint32_t kMajor = 1;
// Newer than the kernel headers of Debian 12 (linux/kfd_ioctl.h of Linux 6.5).
constexpr unsigned kExportBuffer = 0x24;
constexpr unsigned kRuntimeEnable = 0x25;
// Not in the kernel's own header: sharing between processes of the driver that AMD ships.
constexpr unsigned kImportOfProcess = 0x80;
constexpr unsigned kExportToProcess = 0x81;
struct ImportArguments {
  uint64_t handle;
  uint64_t address;
  uint64_t mmap_offset;
  ShareToken token;
  uint32_t gpu_id;
  uint32_t flags;
};
struct ExportToProcessArguments {
  uint64_t handle;
  ShareToken token;
  uint32_t gpu_id;
  uint32_t flags;
};
struct ExportArguments {
  uint64_t handle;
  uint32_t flags;
  uint32_t descriptor;
};
constexpr uint32_t kForever = 0xffffffff;

constexpr uint64_t kStoreBytes = (kMaxGpus * Mi300x::kMemoryBytes) + (256ULL << 30);
constexpr uint64_t kHugeLimit = (1ULL << 47) - 1;
constexpr uint64_t kLowestAddress = 0x4000;
constexpr uint64_t kLdsAperture = 1ULL << 48;
constexpr uint64_t kScratchAperture = 2ULL << 48;
constexpr uint64_t kApertureBytes = 1ULL << 32;

constexpr unsigned number_of(unsigned long request) { return _IOC_NR(request); }

uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Kind kind_of(uint32_t flags) {
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) return Kind::kUserPointer;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) return Kind::kDoorbell;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) return Kind::kRegisters;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT) != 0) return Kind::kSystem;
  return Kind::kVram;
}

uint32_t wait_result(Events::Outcome outcome) {
  switch (outcome) {
    case Events::Outcome::kReady:
      return KFD_IOC_WAIT_RESULT_COMPLETE;
    case Events::Outcome::kTimeout:
      return KFD_IOC_WAIT_RESULT_TIMEOUT;
    default:
      return KFD_IOC_WAIT_RESULT_FAIL;
  }
}

template <typename T>
T& as(void* arguments) {
  return *static_cast<T*>(arguments);
}

}  // namespace

Kfd::Kfd(const Settings& settings, const std::function<void(const std::string&)>& refuse)
    : log_(settings.log), store_(kStoreBytes) {
  faults_.parse(settings.faults);
  for (const std::string& file : settings.shadow_libraries) executors_.add(ShadowLibrary::load(file));
  executors_.add(std::make_unique<RocrBlitKernels>());
  if (settings.emulator.empty()) {
    executors_.add(std::make_unique<HipBlitKernels>());
  } else {
    const Emulator::Settings how{settings.emulator, settings.sanitize, settings.strict_decode, settings.deadline, settings.progress};
    executors_.add(std::make_unique<Emulator>(how, log_, events_));
  }
  for (uint32_t gpu = 0; gpu < settings.gpus; ++gpu) {
    gpus_.push_back(std::make_unique<Gpu>(gpu, store_, events_, executors_, faults_, log_, refuse));
  }
}

Gpu* Kfd::gpu_by_id(uint32_t id) {
  const uint32_t gpu = gpu_of_id(id);
  return gpu < gpus_.size() ? gpus_[gpu].get() : nullptr;
}

int Kfd::call(unsigned number, void* arguments) {
  switch (number) {
    case number_of(AMDKFD_IOC_GET_VERSION):
      as<kfd_ioctl_get_version_args>(arguments) = {kMajor, faults_.interface_minor};
      return 0;
    case number_of(AMDKFD_IOC_CREATE_QUEUE):
      return create_queue(arguments);
    case number_of(AMDKFD_IOC_DESTROY_QUEUE):
      return destroy_queue(arguments);
    case number_of(AMDKFD_IOC_UPDATE_QUEUE):
    case number_of(AMDKFD_IOC_SET_CU_MASK):
      return known_queue(arguments);
    case number_of(AMDKFD_IOC_GET_CLOCK_COUNTERS):
      return clocks(arguments);
    case number_of(AMDKFD_IOC_CREATE_EVENT):
      return create_event(arguments);
    case number_of(AMDKFD_IOC_DESTROY_EVENT):
      return events_.destroy(as<kfd_ioctl_destroy_event_args>(arguments).event_id) ? 0 : -EINVAL;
    case number_of(AMDKFD_IOC_SET_EVENT):
      return events_.set(as<kfd_ioctl_set_event_args>(arguments).event_id) ? 0 : -EINVAL;
    case number_of(AMDKFD_IOC_RESET_EVENT):
      return events_.reset(as<kfd_ioctl_reset_event_args>(arguments).event_id) ? 0 : -EINVAL;
    case number_of(AMDKFD_IOC_WAIT_EVENTS):
      return wait_events(arguments);
    case number_of(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW):
      return apertures(arguments);
    case number_of(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
      return allocate(arguments);
    case number_of(AMDKFD_IOC_FREE_MEMORY_OF_GPU):
      return free(arguments);
    case number_of(AMDKFD_IOC_MAP_MEMORY_TO_GPU):
      return map(arguments, true);
    case number_of(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU):
      return map(arguments, false);
    case number_of(AMDKFD_IOC_SVM):
      return shared_virtual_memory(arguments);
    case number_of(AMDKFD_IOC_AVAILABLE_MEMORY):
      return available_memory(arguments);
    case kExportBuffer:
      return export_buffer(arguments);
    case kExportToProcess:
      return export_to_process(arguments);
    case kImportOfProcess:
      return import_of_process(arguments);
    case number_of(AMDKFD_IOC_SET_XNACK_MODE):
      // Asking (-1) answers "off", and off it stays: pages don't move here.
      if (as<kfd_ioctl_set_xnack_mode_args>(arguments).xnack_enabled > 0) return -EPERM;
      as<kfd_ioctl_set_xnack_mode_args>(arguments).xnack_enabled = 0;
      return 0;
    case number_of(AMDKFD_IOC_SMI_EVENTS):
      return -EPERM;
    // What says how hardware is set up has nothing to do here.
    case number_of(AMDKFD_IOC_SET_MEMORY_POLICY):
    case number_of(AMDKFD_IOC_SET_SCRATCH_BACKING_VA):
    case number_of(AMDKFD_IOC_GET_TILE_CONFIG):
    case number_of(AMDKFD_IOC_SET_TRAP_HANDLER):
    case number_of(AMDKFD_IOC_ACQUIRE_VM):
    case number_of(AMDKFD_IOC_ALLOC_QUEUE_GWS):
    case kRuntimeEnable:
      return 0;
    default:
      log_.line("unknown call " + std::to_string(number));
      return -ENOTTY;
  }
}

int Kfd::create_queue(void* arguments) {
  auto& wanted = as<kfd_ioctl_create_queue_args>(arguments);
  Gpu* gpu = gpu_by_id(wanted.gpu_id);
  if (gpu == nullptr) return -EINVAL;
  const auto type = static_cast<QueueType>(wanted.queue_type);
  if (type == QueueType::kCompute) return -EINVAL;  // rings of PM4 packets: no runtime makes them
  try {
    const auto queue = gpu->create_queue({type, wanted.ring_base_address, wanted.ring_size,
                                          wanted.read_pointer_address, wanted.write_pointer_address});
    if (!queue) return -ENOMEM;
    wanted.queue_id = queue->id;
    wanted.doorbell_offset = queue->doorbell_offset;
  } catch (const GpuFault& fault) {
    log_.line("queue whose memory the GPU can't reach at " + std::to_string(fault.address()));
    return -EFAULT;
  }
  log_.line("queue gpu=" + std::to_string(gpu_of_id(wanted.gpu_id)) +
            " type=" + std::to_string(wanted.queue_type) + " id=" + std::to_string(wanted.queue_id));
  return 0;
}

int Kfd::destroy_queue(void* arguments) {
  const uint32_t id = as<kfd_ioctl_destroy_queue_args>(arguments).queue_id;
  return std::ranges::any_of(gpus_, [id](const auto& gpu) { return gpu->destroy_queue(id); }) ? 0 : -EINVAL;
}

int Kfd::known_queue(void* arguments) {
  const auto known = [this](uint32_t id) {
    return std::ranges::any_of(gpus_, [id](const auto& gpu) { return gpu->has_queue(id); });
  };
  // Both argument structures hold the id, at different places; which compute units a queue may use and how
  // much of them is not modelled.
  const auto& update = as<kfd_ioctl_update_queue_args>(arguments);
  const auto& mask = as<kfd_ioctl_set_cu_mask_args>(arguments);
  return known(update.queue_id) || known(mask.queue_id) ? 0 : -EINVAL;
}

int Kfd::clocks(void* arguments) {
  auto& clocks = as<kfd_ioctl_get_clock_counters_args>(arguments);
  clocks.gpu_clock_counter = gpu_ticks();
  clocks.cpu_clock_counter = nanoseconds(CLOCK_MONOTONIC_RAW);
  clocks.system_clock_counter = nanoseconds(CLOCK_BOOTTIME);
  clocks.system_clock_freq = 1'000'000'000;
  return 0;
}

int Kfd::create_event(void* arguments) {
  auto& wanted = as<kfd_ioctl_create_event_args>(arguments);
  const auto id = events_.create(static_cast<EventType>(wanted.event_type), wanted.auto_reset != 0);
  if (!id) return -ENOSPC;
  wanted.event_id = *id;
  wanted.event_trigger_data = *id;
  // Without a place in the event page the runtime's DMA packets would raise no interrupt.
  wanted.event_slot_index = *id;
  if (wanted.event_page_offset == 0) wanted.event_page_offset = 1;
  return 0;
}

int Kfd::wait_events(void* arguments) {
  auto& wanted = as<kfd_ioctl_wait_events_args>(arguments);
  const std::span data(reinterpret_cast<kfd_event_data*>(wanted.events_ptr), wanted.num_events);
  std::vector<Events::Waited> waited;
  waited.reserve(data.size());
  // The age of a signal event is the first word of the union (kfd_hsa_signal_event_data since KFD 1.13).
  for (kfd_event_data& one : data) waited.push_back({one.event_id, reinterpret_cast<uint64_t&>(one), {}});
  const auto limit =
      wanted.timeout == kForever ? std::nullopt : std::optional(std::chrono::milliseconds(wanted.timeout));
  const auto outcome = events_.wait(waited, wanted.wait_for_all != 0, limit);
  wanted.wait_result = wait_result(outcome);
  for (size_t index = 0; index < waited.size(); ++index) {
    if (const auto& fault = waited[index].fault) {
      auto& exception = data[index].memory_exception_data;
      exception = {};
      exception.failure.NotPresent = fault->present ? 0 : 1;
      exception.failure.ReadOnly = fault->read_only ? 1 : 0;
      exception.va = fault->address;
      exception.gpu_id = fault->gpu_id;
    } else if (waited[index].age != 0) {
      reinterpret_cast<uint64_t&>(data[index]) = waited[index].age;
    }
  }
  return 0;
}

int Kfd::apertures(void* arguments) const {
  auto& wanted = as<kfd_ioctl_get_process_apertures_new_args>(arguments);
  if (wanted.num_of_nodes == 0) {
    wanted.num_of_nodes = gpus();
    return 0;
  }
  const std::span given(
      reinterpret_cast<kfd_process_device_apertures*>(wanted.kfd_process_device_apertures_ptr),
      wanted.num_of_nodes);
  const uint32_t count = std::min(wanted.num_of_nodes, gpus());
  for (uint32_t gpu = 0; gpu < count; ++gpu) {
    given[gpu] = {};
    given[gpu].lds_base = kLdsAperture;
    given[gpu].lds_limit = kLdsAperture + kApertureBytes - 1;
    given[gpu].scratch_base = kScratchAperture;
    given[gpu].scratch_limit = kScratchAperture + kApertureBytes - 1;
    given[gpu].gpuvm_base = kLowestAddress;
    given[gpu].gpuvm_limit = kHugeLimit;
    given[gpu].gpu_id = gpu_id(gpu);
  }
  wanted.num_of_nodes = count;
  return 0;
}

int Kfd::allocate(void* arguments) {
  auto& wanted = as<kfd_ioctl_alloc_memory_of_gpu_args>(arguments);
  const Gpu* gpu = gpu_by_id(wanted.gpu_id);
  if (gpu == nullptr || wanted.size == 0) return -EINVAL;
  Buffer buffer;
  buffer.kind = kind_of(wanted.flags);
  buffer.gpu = gpu_of_id(wanted.gpu_id);
  buffer.address = wanted.va_addr;
  buffer.bytes = wanted.size;
  buffer.writable = (wanted.flags & static_cast<uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)) != 0;
  if (buffer.kind == Kind::kVram &&
      allocations_.used_vram(buffer.gpu) + buffer.bytes > Mi300x::kMemoryBytes) {
    return -ENOMEM;
  }
  if (buffer.kind == Kind::kUserPointer) buffer.host = reinterpret_cast<std::byte*>(wanted.mmap_offset);
  const bool doorbell = buffer.kind == Kind::kDoorbell;
  const auto handle =
      allocations_.create(std::move(buffer), doorbell ? std::optional(gpu->doorbell_page()) : std::nullopt);
  if (!handle) return -ENOMEM;
  wanted.handle = *handle;
  const auto made = allocations_.find(*handle);
  if (made->offset) wanted.mmap_offset = *made->offset;
  return 0;
}

int Kfd::free(void* arguments) {
  const uint64_t handle = as<kfd_ioctl_free_memory_of_gpu_args>(arguments).handle;
  const auto buffer = allocations_.find(handle);
  if (buffer == nullptr) return -EINVAL;
  if (buffer->address != 0) {
    for (const auto& gpu : gpus_) gpu->memory().unmap(buffer->address, buffer->bytes);
  }
  return allocations_.free(handle) ? 0 : -EINVAL;
}

int Kfd::map(void* arguments, bool mapped) {
  // Mapping and unmapping take the same arguments.
  auto& wanted = as<kfd_ioctl_map_memory_to_gpu_args>(arguments);
  const auto buffer = allocations_.find(wanted.handle);
  if (buffer == nullptr || buffer->address == 0) return -EINVAL;
  const std::span ids(reinterpret_cast<const uint32_t*>(wanted.device_ids_array_ptr), wanted.n_devices);
  for (; wanted.n_success < ids.size(); ++wanted.n_success) {
    const uint32_t gpu = gpu_of_id(ids[wanted.n_success]);
    const int result = mapped ? map_buffer(gpu, *buffer, 0, buffer->bytes, buffer->address, buffer->writable)
                              : unmap(gpu, buffer->address, buffer->bytes);
    if (result != 0) return result;
  }
  return 0;
}

int Kfd::map_buffer(uint32_t gpu, const Buffer& buffer, uint64_t offset, uint64_t bytes, uint64_t address,
                    bool writable) {
  if (gpu >= gpus_.size() || offset > buffer.bytes || bytes > buffer.bytes - offset) return -EINVAL;
  if (faults_.failing_map.now()) return -ENOMEM;
  gpus_[gpu]->memory().map(address, bytes, {buffer.host + offset, writable});
  return 0;
}

int Kfd::unmap(uint32_t gpu, uint64_t address, uint64_t bytes) {
  if (gpu >= gpus_.size()) return -EINVAL;
  gpus_[gpu]->memory().unmap(address, bytes);
  return 0;
}

int Kfd::shared_virtual_memory(void* arguments) {
  auto& wanted = as<kfd_ioctl_svm_args>(arguments);
  const std::span<kfd_ioctl_svm_attribute> attributes(wanted.attrs, wanted.nattr);
  const auto start = static_cast<uint64_t>(wanted.start_addr);
  for (kfd_ioctl_svm_attribute& attribute : attributes) {
    if (wanted.op == KFD_IOCTL_SVM_OP_GET_ATTR) {
      // Pages never move here: nowhere preferred, nothing prefetched.
      if (attribute.type == KFD_IOCTL_SVM_ATTR_PREFERRED_LOC ||
          attribute.type == KFD_IOCTL_SVM_ATTR_PREFETCH_LOC) {
        attribute.value = static_cast<uint32_t>(KFD_IOCTL_SVM_LOCATION_UNDEFINED);
      }
      continue;
    }
    Gpu* gpu = gpu_by_id(attribute.value);
    switch (attribute.type) {
      case KFD_IOCTL_SVM_ATTR_ACCESS:
      case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
        if (gpu == nullptr) return -EINVAL;
        gpu->memory().map(start, wanted.size, {reinterpret_cast<std::byte*>(start), true});
        break;
      case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
        if (gpu == nullptr) return -EINVAL;
        gpu->memory().unmap(start, wanted.size);
        break;
      default:
        break;
    }
  }
  return 0;
}

int Kfd::available_memory(void* arguments) {
  auto& wanted = as<kfd_ioctl_get_available_memory_args>(arguments);
  if (gpu_by_id(wanted.gpu_id) == nullptr) return -EINVAL;
  wanted.available = Mi300x::kMemoryBytes - allocations_.used_vram(gpu_of_id(wanted.gpu_id));
  return 0;
}

int Kfd::export_buffer(void* arguments) {
  auto& wanted = as<ExportArguments>(arguments);
  const auto token = shared_.publish(wanted.handle);
  if (!token) return -EINVAL;
  const int descriptor = memfd_create("softkfd-buffer", MFD_CLOEXEC);
  if (descriptor < 0) return -errno;
  if (pwrite(descriptor, token->data(), sizeof(*token), 0) != sizeof(*token)) {
    close(descriptor);
    return -EIO;
  }
  wanted.descriptor = static_cast<uint32_t>(descriptor);
  return 0;
}

std::shared_ptr<Buffer> Kfd::buffer_of(int descriptor) const {
  ShareToken token{};
  const bool read = pread(descriptor, token.data(), sizeof(token), 0) == sizeof(token);
  return read ? shared_.open(token) : nullptr;
}

int Kfd::export_to_process(void* arguments) {
  auto& wanted = as<ExportToProcessArguments>(arguments);
  const auto token = shared_.publish(wanted.handle);
  if (!token) return -EINVAL;
  wanted.token = *token;
  return 0;
}

int Kfd::import_of_process(void* arguments) {
  auto& wanted = as<ImportArguments>(arguments);
  const auto original = shared_.open(wanted.token);
  if (original == nullptr || gpu_by_id(wanted.gpu_id) == nullptr) return -EINVAL;
  Buffer buffer;
  buffer.kind = Kind::kForeign;
  buffer.gpu = gpu_of_id(wanted.gpu_id);
  buffer.address = wanted.address;
  buffer.bytes = original->bytes;
  buffer.host = original->host;
  buffer.original = original;
  const auto window = shared_.window(original);
  if (!window) return -ENOMEM;
  const auto handle = allocations_.create(std::move(buffer));
  if (!handle) return -ENOMEM;
  wanted.handle = *handle;
  wanted.mmap_offset = *window;
  return 0;
}

}  // namespace softkfd
