#include "memory/placed_memory.h"

#include <ranges>
#include <sstream>

#include "plan/failure.h"

namespace rpl::replay {
namespace {

constexpr uint32_t kReadAndWrite = 3;

std::string text_of(const Range& range) {
  std::ostringstream text;
  text << range.size << " bytes at 0x" << std::hex << range.address;
  return text.str();
}

}  // namespace

void PlacedMemory::reserve(const std::vector<Pages>& pages, HeldPages& held, Result& result, bool go_on) {
  for (const Pages& one : pages) {
    const Range& range = one.range;
    held.release(range);
    void* address = nullptr;
    const hsa::Status status = hsa_.vmem_reserve(&address, range.size, range.address, 0);
    if (status != hsa::kSuccess) {
      result.reservations.push_back({range, std::nullopt});
      throw Failure("reserve_failed", "the runtime does not reserve " + text_of(range), hsa_.text_of(status));
    }
    places_.push_back({address, range.size, one.gpu, {}, false, false});
    const auto returned = reinterpret_cast<uint64_t>(address);
    result.reservations.push_back({range, returned});
    if (returned != range.address && !go_on) {
      std::ostringstream where;
      where << "they would lie at 0x" << std::hex << returned;
      throw Failure("relocated", "the runtime gives other addresses for " + text_of(range), where.str(),
                    "rpl replay reserve-check shows what it gives");
    }
  }
}

void PlacedMemory::map() {
  for (Place& place : places_) map(place);
}

void PlacedMemory::map(Place& place) const {
  const std::string what = text_of({reinterpret_cast<uint64_t>(place.address), place.size});
  const hsa::Pool pool = gpus_.at(place.gpu).pool;
  hsa_.require(hsa_.vmem_handle_create(pool, place.size, 0, 0, &place.handle), "map_failed",
               "there is no memory for " + what);
  place.backed = true;
  hsa_.require(hsa_.vmem_map(place.address, place.size, 0, place.handle, 0), "map_failed",
               "the runtime does not map " + what);
  place.mapped = true;
  std::vector<hsa::MemoryAccess> access;
  for (const hsa::Agent agent : gpus_.agents()) access.push_back({kReadAndWrite, agent});
  hsa_.require(hsa_.vmem_set_access(place.address, place.size, access.data(), access.size()), "map_failed",
               "the GPUs get no access to " + what);
}

PlacedMemory::~PlacedMemory() {
  for (const Place& place : places_ | std::views::reverse) {
    if (place.mapped) hsa_.vmem_unmap(place.address, place.size);
    if (place.backed) hsa_.vmem_handle_release(place.handle);
    hsa_.vmem_address_free(place.address, place.size);
  }
}

}  // namespace rpl::replay
