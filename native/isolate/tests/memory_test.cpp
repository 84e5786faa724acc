#include <doctest/doctest.h>

#include "memory/memory_map.h"

using namespace rpl::isolate;

namespace {

constexpr uint64_t kGpu = 2;
constexpr uint64_t kThirdAgent = 3;

Allocation allocation(uint64_t base, uint64_t size, Kind kind = Kind::kPool) {
  Allocation one;
  one.base = base;
  one.size = size;
  one.kind = kind;
  return one;
}

std::vector<uint64_t> bases(MemoryMap& map, uint64_t agent = kGpu) {
  std::vector<uint64_t> found;
  for (const Allocation& one : map.reachable_by(agent)) found.push_back(one.base);
  return found;
}

}  // namespace

TEST_CASE("records are found by any address in them, and come in the order of addresses") {
  IntervalTable<Allocation> table(1000);
  for (const uint64_t base : {0x3000, 0x1000, 0x2000}) CHECK(table.insert(allocation(base, 0x800)));
  CHECK(table.find(0x17ff)->base == 0x1000);
  CHECK(table.find(0x1800) == nullptr);
  CHECK(table.take(0x2000)->base == 0x2000);
  CHECK_FALSE(table.take(0x2000));
  CHECK(table.insert(allocation(0x1400, 0x2000)));  // over both that are left
  CHECK(table.size() == 1);
  CHECK(table.find(0x3000)->base == 0x1400);
}

TEST_CASE("a map of many records stays in order") {
  IntervalTable<Allocation> table(1 << 20);
  constexpr uint64_t kCount = 20'000;
  for (uint64_t i = 0; i < kCount; ++i) CHECK(table.insert(allocation((i * 7919 % kCount) * 16, 16)));
  uint64_t next = 0;
  table.visit_all([&](const Allocation& one) { next += one.base == next * 16 ? 1 : 0; });
  CHECK(next == kCount);
}

TEST_CASE("a map without room says so instead of being shorter") {
  MemoryMap map(3);
  for (uint64_t i = 1; i <= 3; ++i) map.add(allocation(i << 20, 16));
  CHECK_FALSE(map.exhausted());
  map.add(allocation(9 << 20, 16));
  CHECK(map.exhausted());
}

TEST_CASE("memory that was freed is gone, and is back when freeing failed") {
  MemoryMap map;
  map.add(allocation(0x1000, 16));
  map.add(allocation(0x2000, 0));  // the runtime gave nothing
  const auto record = map.remove(0x1000);
  REQUIRE(record);
  CHECK(bases(map).empty());
  map.add(*record);
  CHECK(bases(map) == std::vector<uint64_t>{0x1000});
}

TEST_CASE("host memory that was locked twice is unlocked twice") {
  MemoryMap map;
  Allocation locked = allocation(0x9000, 0x1000, Kind::kLockedHost);
  locked.host = 0x5000;
  map.add(locked);
  map.add(locked);
  CHECK(map.remove_locked(0x5000));
  CHECK(bases(map) == std::vector<uint64_t>{0x9000});
  CHECK(map.remove_locked(0x5000));
  CHECK(bases(map).empty());
  CHECK_FALSE(map.remove_locked(0x5000));
}

TEST_CASE("virtual memory: several mappings in a reservation, each reachable by who was given it") {
  MemoryMap map;
  map.reserve(0x10000, 0x4000);
  map.create_handle(5, 12);
  map.map(0x10000, 0x1000, 0, 5);
  map.map(0x12000, 0x1000, 0x1000, 5);
  CHECK(bases(map).empty());
  const rpl::hsa::MemoryAccess access{3, {kGpu}};
  map.set_access(0x10000, 0x4000, &access, 1);
  const auto found = map.reachable_by(kGpu);
  REQUIRE(found.size() == 2);
  CHECK(found[1].in_offset == 0x1000);
  CHECK(found[1].pool == 12);
  CHECK(found[1].reservation == 0x10000);
  CHECK(found[1].permissions == 3);
  CHECK(bases(map, kThirdAgent).empty());
  map.unmap(0x10000, 0x1000);
  CHECK(bases(map) == std::vector<uint64_t>{0x12000});
  map.map(0x10000, 0x1000, 0, 5);  // who had access to the mapping before has none to this one
  CHECK(bases(map) == std::vector<uint64_t>{0x12000});
}

TEST_CASE("attributes of shared virtual memory split ranges, and pools have precedence") {
  MemoryMap map;
  map.give_svm(0x10000, 0x4000);
  map.take_svm(0x11000, 0x1000);
  CHECK(bases(map) == std::vector<uint64_t>{0x10000, 0x12000});
  map.add(allocation(0x12000, 0x1000));
  CHECK(bases(map) == std::vector<uint64_t>{0x10000, 0x12000});
  map.give_svm(0x10800, 0x4000);
  map.remove(0x12000);
  CHECK(bases(map) == std::vector<uint64_t>{0x10000, 0x10800});
}
