// The functions of libdrm and libdrm_amdgpu that ROCr and its thunk call, in place of those libraries.
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver/device_files.h"
#include "driver/process.h"
#include "topology/device.h"

#define SOFTKFD_EXPORT extern "C" __attribute__((visibility("default")))

// libdrm declares both without saying what they are.
struct amdgpu_device {
  uint32_t gpu;
  int file;
};

struct amdgpu_bo {
  uint32_t gpu;
  uint32_t name;  // by which calls on the render node know it
  std::shared_ptr<softkfd::Buffer> buffer;
};

namespace {

struct NamedBuffers {
  std::mutex mutex;
  std::map<uint32_t, uint64_t> offsets;  // by name: where mmap on a render node finds the bytes
  uint32_t next = 1;
};

NamedBuffers& named_buffers() {
  static NamedBuffers& named = *new NamedBuffers;
  return named;
}

}  // namespace

SOFTKFD_EXPORT int drmOpenRender(int minor) {
  const auto gpu = softkfd::render_node(std::string(softkfd::kRenderDevice) + std::to_string(minor));
  return gpu ? softkfd::open_device_file(gpu) : -ENOENT;
}

SOFTKFD_EXPORT int drmClose(int file) { return close(file); }

SOFTKFD_EXPORT int amdgpu_device_initialize(int file, uint32_t* major, uint32_t* minor,
                                            amdgpu_device_handle* device) {
  const auto gpu = softkfd::gpu_of_file(file);
  if (!gpu) return -EINVAL;
  *major = 3;
  *minor = 54;
  // libdrm keeps a descriptor of its own, so that the caller may close the one it gave.
  *device = new amdgpu_device{*gpu, softkfd::open_device_file(gpu)};
  return 0;
}

SOFTKFD_EXPORT int amdgpu_device_deinitialize(amdgpu_device_handle device) {
  close(device->file);
  delete device;
  return 0;
}

SOFTKFD_EXPORT int amdgpu_device_get_fd(amdgpu_device_handle device) { return device->file; }

SOFTKFD_EXPORT const char* amdgpu_get_marketing_name(amdgpu_device_handle) { return softkfd::Mi300x::kName; }

SOFTKFD_EXPORT int amdgpu_query_gpu_info(amdgpu_device_handle, amdgpu_gpu_info* info) {
  *info = {};
  info->asic_id = softkfd::Mi300x::kDeviceId;
  info->family_id = softkfd::Mi300x::kFamily;
  info->gpu_counter_freq = softkfd::Mi300x::kCounterHz / 1000;
  return 0;
}

SOFTKFD_EXPORT int amdgpu_bo_import(amdgpu_device_handle device, amdgpu_bo_handle_type type, uint32_t shared,
                                    amdgpu_bo_import_result* result) {
  if (type != amdgpu_bo_handle_type_dma_buf_fd) return -EINVAL;
  auto buffer = softkfd::process_driver().buffer_of(static_cast<int>(shared));
  if (buffer == nullptr) return -EINVAL;
  NamedBuffers& named = named_buffers();
  const std::scoped_lock lock(named.mutex);
  const uint32_t name = named.next++;
  if (buffer->offset) named.offsets.emplace(name, *buffer->offset);
  result->alloc_size = buffer->bytes;
  result->buf_handle = new amdgpu_bo{device->gpu, name, std::move(buffer)};
  return 0;
}

SOFTKFD_EXPORT int amdgpu_bo_free(amdgpu_bo_handle bo) {
  NamedBuffers& named = named_buffers();
  {
    const std::scoped_lock lock(named.mutex);
    named.offsets.erase(bo->name);
  }
  delete bo;
  return 0;
}

SOFTKFD_EXPORT int amdgpu_bo_export(amdgpu_bo_handle bo, amdgpu_bo_handle_type type, uint32_t* shared) {
  if (type != amdgpu_bo_handle_type_kms) return -EINVAL;
  *shared = bo->name;
  return 0;
}

SOFTKFD_EXPORT int amdgpu_bo_cpu_map(amdgpu_bo_handle bo, void** address) {
  *address = bo->buffer->host;
  return 0;
}

SOFTKFD_EXPORT int amdgpu_bo_va_op(amdgpu_bo_handle bo, uint64_t offset, uint64_t bytes, uint64_t address,
                                   uint64_t flags, uint32_t operation) {
  softkfd::Kfd& driver = softkfd::process_driver();
  if (operation == AMDGPU_VA_OP_UNMAP) return driver.unmap(bo->gpu, address, bytes);
  if (operation != AMDGPU_VA_OP_MAP) return -EINVAL;
  // No flags: what the kernel gives by default, reading, writing and executing.
  const bool writable = flags == 0 || (flags & AMDGPU_VM_PAGE_WRITEABLE) != 0;
  return driver.map_buffer(bo->gpu, *bo->buffer, offset, bytes, address, writable);
}

SOFTKFD_EXPORT int drmCommandWriteRead(int, unsigned long index, void* data, unsigned long size) {
  if (index != DRM_AMDGPU_GEM_MMAP || size != sizeof(drm_amdgpu_gem_mmap)) return -EINVAL;
  auto* wanted = static_cast<drm_amdgpu_gem_mmap*>(data);
  NamedBuffers& named = named_buffers();
  const std::scoped_lock lock(named.mutex);
  const auto found = named.offsets.find(wanted->in.handle);
  if (found == named.offsets.end()) return -ENOENT;
  wanted->out.addr_ptr = found->second;
  return 0;
}
