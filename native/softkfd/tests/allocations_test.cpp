#include "memory/allocations.h"

#include <doctest/doctest.h>

#include "memory/backing_store.h"

namespace softkfd {
namespace {

Buffer wanted(Kind kind, uint64_t bytes) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.bytes = bytes;
  return buffer;
}

TEST_CASE("a buffer outlives its handle while an import holds it") {
  BackingStore store(1 << 20);
  Allocations allocations(store);
  const uint64_t handle = allocations.create(wanted(Kind::kVram, 1 << 20)).value();
  auto import = allocations.find(handle);
  *import->host = std::byte{4};
  CHECK(allocations.free(handle));
  CHECK_FALSE(allocations.free(handle));
  CHECK(allocations.find(handle) == nullptr);
  CHECK(*import->host == std::byte{4});
  CHECK_FALSE(allocations.create(wanted(Kind::kVram, 4096)));
  import.reset();
  CHECK(allocations.create(wanted(Kind::kVram, 4096)));
}

TEST_CASE("device memory in use is counted for each GPU") {
  BackingStore store(1 << 20);
  Allocations allocations(store);
  allocations.create(wanted(Kind::kVram, 8192));
  allocations.create(wanted(Kind::kSystem, 4096));
  CHECK(allocations.used_vram(0) == 8192);
  CHECK(allocations.used_vram(1) == 0);
}

}  // namespace
}  // namespace softkfd
