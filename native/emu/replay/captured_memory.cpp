#include "replay/captured_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "loader/code_object.h"

namespace rpl_emu {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t page_of(uint64_t address) { return address / kPage * kPage; }
uint64_t next_page(uint64_t address) { return (address + kPage - 1) / kPage * kPage; }
void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// A region's file, as long as the region.
class RegionFile {
 public:
  explicit RegionFile(const PlannedRegion& region) : file_(open(region.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    struct stat found {};
    if (file_ < 0) throw BadFile("cannot read " + region.file);
    if (fstat(file_, &found) != 0 || !S_ISREG(found.st_mode) || std::cmp_not_equal(found.st_size, region.bytes)) {
      close(file_);
      throw BadFile(region.file + " is not a file of " + std::to_string(region.bytes) + " bytes");
    }
  }
  RegionFile(const RegionFile&) = delete;
  RegionFile& operator=(const RegionFile&) = delete;
  RegionFile(RegionFile&&) = delete;
  RegionFile& operator=(RegionFile&&) = delete;
  ~RegionFile() { close(file_); }

  void map(uint64_t address, uint64_t bytes, uint64_t offset) const {
    const void* given = mmap(pointer(address), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file_, static_cast<off_t>(offset));
    if (given == MAP_FAILED) throw std::bad_alloc();
  }
  void copy(uint64_t address, uint64_t bytes, uint64_t offset) const {
    while (bytes != 0) {
      const ssize_t got = pread(file_, pointer(address), bytes, static_cast<off_t>(offset));
      if (got <= 0) throw BadFile("a region's file became shorter while it was read");
      const auto read = static_cast<uint64_t>(got);
      address += read;
      offset += read;
      bytes -= read;
    }
  }

 private:
  int file_;
};

void restore_region(const PlannedRegion& region) {
  const RegionFile file(region);
  if (region.base % kPage != 0) {
    file.copy(region.base, region.bytes, 0);
    return;
  }
  const uint64_t whole = page_of(region.bytes);
  if (whole != 0) file.map(region.base, whole, 0);
  file.copy(region.base + whole, region.bytes - whole, whole);
}

void take_place(AddressRange range) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* given = mmap(pointer(range.begin), range.bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (given == pointer(range.begin)) return;
  const int why = errno;
  if (given != MAP_FAILED) munmap(given, range.bytes);
  std::ostringstream place;
  place << "0x" << std::hex << range.begin;
  if (given == MAP_FAILED && why != EEXIST) throw BadFile("no process can have memory at " + place.str() + ": " + std::strerror(why));
  throw LayoutClash("this process lies itself where the capture has memory, at " + place.str());
}

}  // namespace

CapturedMemory::CapturedMemory(const std::vector<PlannedRegion>& regions) : regions_(regions) {
  std::vector<AddressRange> wanted;
  uint64_t behind = 0;
  for (const PlannedRegion& r : regions) {
    if (r.bytes == 0 || r.base + r.bytes < r.base || r.base < behind) throw BadFile("a region of impossible size, or regions that are not in order");
    behind = r.base + r.bytes;
    const uint64_t begin = page_of(r.base);
    const uint64_t end = next_page(behind);
    if (!wanted.empty() && begin <= wanted.back().begin + wanted.back().bytes) wanted.back().bytes = end - wanted.back().begin;
    else wanted.push_back({begin, end - begin});
  }
  try {
    for (const AddressRange& range : wanted) {
      take_place(range);
      mapped_.push_back(range);
    }
  } catch (...) {
    for (const AddressRange& range : mapped_) munmap(pointer(range.begin), range.bytes);
    throw;
  }
}

CapturedMemory::~CapturedMemory() {
  for (const AddressRange& range : mapped_) munmap(pointer(range.begin), range.bytes);
}

void CapturedMemory::restore() {
  for (const PlannedRegion& region : regions_) restore_region(region);
}

bool CapturedMemory::holds(AddressRange range) const {
  return std::ranges::any_of(regions_, [&](const PlannedRegion& r) {
    return range.begin >= r.base && range.begin - r.base <= r.bytes && range.bytes <= r.bytes - (range.begin - r.base);
  });
}

void CapturedMemory::apply(const std::vector<Edit>& edits) const {
  for (const Edit& e : edits) {
    if (!holds(e.range)) throw BadFile("an edit outside of the captured memory");
    std::memcpy(pointer(e.range.begin), e.bytes, e.range.bytes);
  }
}

void CapturedMemory::add_to(GuestMemory& memory) const {
  for (const PlannedRegion& region : regions_) memory.add(region.base, region.bytes, true);
}

}  // namespace rpl_emu
