#include "memory/backing_store.h"

#include <doctest/doctest.h>

#include <cstring>

namespace softkfd {
namespace {

constexpr uint64_t kMega = 1ULL << 20;

TEST_CASE("pages come zeroed, aligned and are given back") {
  BackingStore store(8 * kMega);
  const uint64_t first = store.allocate(100, 0).value();
  const uint64_t second = store.allocate(4096, 2 * kMega).value();
  CHECK(first % 4096 == 0);
  CHECK(second % (2 * kMega) == 0);
  std::memset(store.at(first), 7, 4096);
  store.release(first, 100);
  CHECK(store.resident_bytes() == 0);
  CHECK(store.allocate(100, 0).value() == first);
  CHECK(*store.at(first) == std::byte{0});
}

TEST_CASE("a full store says so, and room that was freed in pieces is one again") {
  BackingStore store(4 * 4096);
  const uint64_t a = store.allocate(4096, 0).value();
  const uint64_t b = store.allocate(4096, 0).value();
  const uint64_t c = store.allocate(2 * 4096, 0).value();
  CHECK_FALSE(store.allocate(1, 0));
  store.release(a, 4096);
  store.release(c, 2 * 4096);
  CHECK_FALSE(store.allocate(3 * 4096, 0));
  store.release(b, 4096);
  CHECK(store.allocate(4 * 4096, 0));
}

TEST_CASE("holes are told from data without touching them") {
  BackingStore store(64 * kMega);
  *store.at(32 * kMega) = std::byte{1};
  const auto hole = store.extent(0, 64 * kMega);
  CHECK(hole.is_hole);
  CHECK(hole.bytes == 32 * kMega);
  const auto data = store.extent(32 * kMega, 32 * kMega);
  CHECK_FALSE(data.is_hole);
  CHECK(data.bytes < 4 * kMega);
  CHECK_FALSE(store.extent(32 * kMega, 4096).is_hole);
  CHECK(store.extent(48 * kMega, kMega).is_hole);
  store.zero(32 * kMega, kMega);
  CHECK(store.extent(32 * kMega, kMega).is_hole);
  *store.at(32 * kMega) = std::byte{1};
  CHECK(store.resident_bytes() < 4 * kMega);
}

}  // namespace
}  // namespace softkfd
