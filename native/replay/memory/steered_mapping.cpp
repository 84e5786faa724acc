#include "memory/steered_mapping.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>

namespace rpl::replay {
namespace {

std::atomic<uint64_t> wanted_address{0};
std::atomic<uint64_t> wanted_size{0};

// The C library's, or of what stands before it.
void* next_mmap(uint64_t address, size_t size, int protection, int flags, int file, off_t offset) {
  using Mmap = void* (*)(void*, size_t, int, int, int, off_t);
  static const auto next = reinterpret_cast<Mmap>(dlsym(RTLD_NEXT, "mmap"));
  return next(reinterpret_cast<void*>(address), size, protection, flags, file, offset);
}

}  // namespace

void prepare_steering() {
  // Variables of libhsakmt: no pages without access around memory, no alignment to powers of two.
  setenv("HSA_SVM_GUARD_PAGES", "0", 1);
  setenv("HSA_MAX_VA_ALIGN", "0", 1);
}

SteeredMapping::SteeredMapping(const Range& range) {
  wanted_size = range.size;
  wanted_address = range.address;
}

SteeredMapping::~SteeredMapping() { wanted_address = 0; }

void* steered(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  // Address space for memory of a GPU is asked for without access. A library that does not heed the settings
  // asks for more, keeps a page in front of it free, and gives back what it does not need.
  constexpr size_t kMostBeside = 4 << 20;
  constexpr uint64_t kPage = 4096;
  const uint64_t place = wanted_address;
  const uint64_t wanted = place != 0 && size > wanted_size ? place - kPage : place;
  const bool fits = wanted != 0 && address == nullptr && protection == PROT_NONE && file == -1 &&
                    (flags & MAP_FIXED) == 0 && size >= wanted_size && size - wanted_size <= kMostBeside;
  if (fits) {
    void* const given = next_mmap(wanted, size, protection, flags | MAP_FIXED_NOREPLACE, file, offset);
    if (given == reinterpret_cast<void*>(wanted)) {
      wanted_address = 0;
      return given;
    }
    if (given != MAP_FAILED) munmap(given, size);
  }
  return next_mmap(reinterpret_cast<uint64_t>(address), size, protection, flags, file, offset);
}

}  // namespace rpl::replay

extern "C" {
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's names are reserved ones
[[gnu::visibility("default")]] void* mmap(void* address, size_t size, int protection, int flags, int file,
                                          off_t offset) noexcept {
  return rpl::replay::steered(address, size, protection, flags, file, offset);
}
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
[[gnu::visibility("default")]] void* mmap64(void* address, size_t size, int protection, int flags, int file,
                                            off_t offset) noexcept {
  return rpl::replay::steered(address, size, protection, flags, file, offset);
}
}
