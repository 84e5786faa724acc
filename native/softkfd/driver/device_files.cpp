#include "driver/device_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <string>

#include "driver/process.h"
#include "topology/device.h"

namespace softkfd {
namespace {

struct RenderFiles {
  std::mutex mutex;
  std::map<int, uint32_t> gpus;
};

RenderFiles& render_files() {
  static RenderFiles& files = *new RenderFiles;
  return files;
}

}  // namespace

std::optional<uint32_t> render_node(std::string_view path) {
  if (!path.starts_with(kRenderDevice)) return std::nullopt;
  const uint32_t gpus = process_driver().gpus();
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    if (path.substr(kRenderDevice.size()) == std::to_string(kFirstRenderMinor + gpu)) return gpu;
  }
  return std::nullopt;
}

int open_device_file(std::optional<uint32_t> gpu) {
  const int descriptor = fcntl(process_driver().file(), F_DUPFD_CLOEXEC, 0);
  RenderFiles& files = render_files();
  const std::scoped_lock lock(files.mutex);
  if (gpu) {
    files.gpus[descriptor] = *gpu;
  } else {
    files.gpus.erase(descriptor);  // the number of a render node that was closed
  }
  return descriptor;
}

std::optional<uint32_t> gpu_of_file(int descriptor) {
  RenderFiles& files = render_files();
  const std::scoped_lock lock(files.mutex);
  const auto found = files.gpus.find(descriptor);
  return found == files.gpus.end() ? std::nullopt : std::optional(found->second);
}

bool is_device_file(int descriptor) {
  const Kfd* driver = existing_driver();
  struct stat asked{};
  struct stat own{};
  return driver != nullptr && fstat(descriptor, &asked) == 0 && fstat(driver->file(), &own) == 0 &&
         asked.st_ino == own.st_ino && asked.st_dev == own.st_dev;
}

}  // namespace softkfd
