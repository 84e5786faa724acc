#include "driver/kfd.h"

#include <doctest/doctest.h>
#include <linux/kfd_ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "topology/device.h"

namespace softkfd {
namespace {

struct Driver {
  explicit Driver(const std::string& faults = "", uint32_t gpus = 1) {
    settings.gpus = gpus;
    settings.faults = faults;
    kfd = std::make_unique<Kfd>(settings, [](const std::string&) {});
  }
  template <typename Arguments>
  int call(unsigned long request, Arguments& arguments) {
    return kfd->call(_IOC_NR(request), &arguments);
  }
  kfd_ioctl_alloc_memory_of_gpu_args allocate(uint64_t address, uint64_t bytes) {
    kfd_ioctl_alloc_memory_of_gpu_args wanted{};
    wanted.gpu_id = gpu_id(0);
    wanted.va_addr = address;
    wanted.size = bytes;
    wanted.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
    REQUIRE(call(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, wanted) == 0);
    return wanted;
  }
  int map(uint64_t handle, std::vector<uint32_t> ids, uint32_t* succeeded = nullptr) {
    kfd_ioctl_map_memory_to_gpu_args wanted{};
    wanted.handle = handle;
    wanted.device_ids_array_ptr = reinterpret_cast<uint64_t>(ids.data());
    wanted.n_devices = static_cast<uint32_t>(ids.size());
    const int result = call(AMDKFD_IOC_MAP_MEMORY_TO_GPU, wanted);
    if (succeeded != nullptr) *succeeded = wanted.n_success;
    return result;
  }
  Settings settings;
  std::unique_ptr<Kfd> kfd;
};

TEST_CASE("memory is allocated, mapped and freed by handle") {
  Driver driver;
  const auto memory = driver.allocate(0x10000000, 8192);
  CHECK(driver.map(memory.handle, {gpu_id(0)}) == 0);
  CHECK(driver.map(memory.handle, {gpu_id(1)}) == -EINVAL);
  kfd_ioctl_free_memory_of_gpu_args freed{memory.handle};
  CHECK(driver.call(AMDKFD_IOC_FREE_MEMORY_OF_GPU, freed) == 0);
  CHECK(driver.call(AMDKFD_IOC_FREE_MEMORY_OF_GPU, freed) == -EINVAL);
  CHECK(driver.map(memory.handle, {gpu_id(0)}) == -EINVAL);
}

TEST_CASE("more device memory than the GPU has is refused") {
  Driver driver;
  driver.allocate(0x10000000, Mi300x::kMemoryBytes - 4096);
  kfd_ioctl_alloc_memory_of_gpu_args wanted{};
  wanted.gpu_id = gpu_id(0);
  wanted.size = 8192;
  wanted.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
  CHECK(driver.call(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, wanted) == -ENOMEM);
}

TEST_CASE("the picked mapping fails and says how far it came") {
  Driver driver("map=2", 2);
  const auto memory = driver.allocate(0x10000000, 4096);
  uint32_t succeeded = 0;
  CHECK(driver.map(memory.handle, {gpu_id(0), gpu_id(1)}, &succeeded) == -ENOMEM);
  CHECK(succeeded == 1);
}

TEST_CASE("a queue whose ring the GPU can't reach is refused") {
  Driver driver;
  kfd_ioctl_create_queue_args wanted{};
  wanted.gpu_id = gpu_id(0);
  wanted.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
  wanted.ring_base_address = 0x10000000;
  wanted.ring_size = 4096;
  wanted.read_pointer_address = 0x10001080;
  wanted.write_pointer_address = 0x10001038;
  CHECK(driver.call(AMDKFD_IOC_CREATE_QUEUE, wanted) == -EFAULT);
  const auto memory = driver.allocate(0x10000000, 8192);
  REQUIRE(driver.map(memory.handle, {gpu_id(0)}) == 0);
  REQUIRE(driver.call(AMDKFD_IOC_CREATE_QUEUE, wanted) == 0);
  kfd_ioctl_destroy_queue_args destroyed{wanted.queue_id, 0};
  CHECK(driver.call(AMDKFD_IOC_DESTROY_QUEUE, destroyed) == 0);
  CHECK(driver.call(AMDKFD_IOC_DESTROY_QUEUE, destroyed) == -EINVAL);
}

TEST_CASE("an exported buffer is found by its descriptor, a foreign descriptor is none") {
  Driver driver;
  const auto memory = driver.allocate(0, 4096);
  struct {
    uint64_t handle;
    uint32_t flags, descriptor;
  } wanted{memory.handle, 0, 0};
  REQUIRE(driver.kfd->call(0x24, &wanted) == 0);
  const auto buffer = driver.kfd->buffer_of(static_cast<int>(wanted.descriptor));
  REQUIRE(buffer != nullptr);
  CHECK(buffer->bytes == 4096);
  close(static_cast<int>(wanted.descriptor));
  int foreign[2];
  REQUIRE(pipe(foreign) == 0);
  CHECK(driver.kfd->buffer_of(foreign[0]) == nullptr);
  close(foreign[0]);
  close(foreign[1]);
}

TEST_CASE("calls that nobody knows are told so") {
  Driver driver;
  CHECK(driver.kfd->call(0x7f, nullptr) == -ENOTTY);
}

}  // namespace
}  // namespace softkfd
