// Calls of the C library that reach the driver: device files, its folder in /sys, ioctl.
//
// The library is preloaded, so these definitions come before those of the C library. Everything that is not
// the driver's goes on to the next definition.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "driver/device_files.h"
#include "driver/process.h"
#include "topology/sysfs_files.h"

#define SOFTKFD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr unsigned kIoctlType = 'K';

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The descriptor of a device file, or nothing when the path is none.
std::optional<int> opened_device(const char* path) {
  if (path == softkfd::kKfdDevice) return softkfd::open_device_file(std::nullopt);
  if (const auto gpu = softkfd::render_node(path)) return softkfd::open_device_file(gpu);
  return std::nullopt;
}

std::optional<std::string> replaced(const char* path) {
  const std::string_view name(path);
  const std::string_view topology(softkfd::kTopologyPath);
  if (!name.starts_with(topology)) return std::nullopt;
  return softkfd::topology_folder() + std::string(name.substr(topology.size()));
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

using OpenFunction = int(const char*, int, ...);
using FopenFunction = FILE*(const char*, const char*);

FILE* open_stream(const char* name, const char* path, const char* mode) {
  const auto instead = replaced(path);
  return next<FopenFunction>(name)(instead ? instead->c_str() : path, mode);
}

bool is_reservation(int protection, int flags) {
  return protection == PROT_NONE && (flags & MAP_NORESERVE) != 0 &&
         (flags & (MAP_FIXED | MAP_ANONYMOUS)) == MAP_ANONYMOUS;
}

// Where tests make the kernel move or refuse address ranges that ask for a place. The runtime asks again
// without one, for somewhat more room; that is refused too.
struct Reserving {
  size_t refused_bytes = 0;

  [[nodiscard]] bool refuses(const void* address, size_t bytes) {
    constexpr size_t kMostPadding = 8UL << 20;
    const bool again = refused_bytes != 0 && bytes >= refused_bytes && bytes - refused_bytes < kMostPadding;
    refused_bytes = address != nullptr ? bytes : 0;
    return address != nullptr || again;
  }
};
thread_local Reserving reserving;

}  // namespace

SOFTKFD_EXPORT int open(const char* path, int flags, ...) {
  if (const auto device = opened_device(path)) return *device;
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return next<OpenFunction>("open")(path, flags, mode);
}

SOFTKFD_EXPORT int open64(const char* path, int flags, ...) {
  if (const auto device = opened_device(path)) return *device;
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return next<OpenFunction>("open64")(path, flags, mode);
}

SOFTKFD_EXPORT FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }

SOFTKFD_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return open_stream("fopen64", path, mode);
}

SOFTKFD_EXPORT DIR* opendir(const char* path) {
  const auto instead = replaced(path);
  return next<DIR*(const char*)>("opendir")(instead ? instead->c_str() : path);
}

SOFTKFD_EXPORT int ioctl(int descriptor, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != kIoctlType || !softkfd::is_device_file(descriptor)) {
    return next<int(int, unsigned long, ...)>("ioctl")(descriptor, request, argument);
  }
  const int result = softkfd::process_driver().call(_IOC_NR(request), argument);
  if (result == 0) return 0;
  errno = -result;
  return -1;
}

SOFTKFD_EXPORT void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor,
                          off_t offset) {
  const softkfd::Kfd* driver = is_reservation(protection, flags) ? softkfd::existing_driver() : nullptr;
  const auto reservation = driver == nullptr ? softkfd::Reservation::kAsAsked : driver->reservation();
  if (reservation == softkfd::Reservation::kRefused && reserving.refuses(address, bytes)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (reservation == softkfd::Reservation::kRelocated) {
    address = nullptr;
    flags &= ~MAP_FIXED_NOREPLACE;
  }
  if (descriptor >= 0 && softkfd::is_device_file(descriptor)) {
    if (const auto foreign = softkfd::process_driver().foreign(static_cast<uint64_t>(offset))) {
      descriptor = foreign->file;
      offset = static_cast<off_t>(foreign->offset);
    }
  }
  const long place = syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset);
  return reinterpret_cast<void*>(place);
}
