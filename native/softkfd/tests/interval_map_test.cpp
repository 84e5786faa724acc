#include "memory/interval_map.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace softkfd {
namespace {

struct Counted {
  uint64_t first = 0;
  [[nodiscard]] Counted later(uint64_t bytes) const { return {first + bytes}; }
};

TEST_CASE("an interval that is cut in the middle keeps both ends with their values") {
  IntervalMap<Counted> map;
  map.assign(100, 200, {1000});
  map.erase(140, 150);
  CHECK(map.size() == 2);
  CHECK(map.find(139)->value.first == 1039);
  CHECK_FALSE(map.find(140));
  CHECK_FALSE(map.find(149));
  CHECK(map.find(150)->value.first == 1050);
  CHECK(map.find(150)->end == 200);
}

TEST_CASE("a new interval replaces what it covers") {
  IntervalMap<Counted> map;
  map.assign(0, 10, {0});
  map.assign(10, 20, {100});
  map.assign(5, 15, {500});
  CHECK(map.find(4)->value.first == 4);
  CHECK(map.find(5)->value.first == 500);
  CHECK(map.find(15)->value.first == 105);
  CHECK(map.overlapping(0, 20).size() == 3);
}

TEST_CASE("empty intervals are nothing") {
  IntervalMap<Counted> map;
  map.assign(7, 7, {1});
  CHECK(map.size() == 0);
  CHECK(map.overlapping(9, 9).empty());
}

TEST_CASE("any sequence of changes agrees with an array") {
  std::mt19937 random(12);  // NOLINT: the same cases each time
  for (int round = 0; round < 50; ++round) {
    IntervalMap<Counted> map;
    std::vector<int64_t> array(64, -1);
    for (int change = 0; change < 40; ++change) {
      const uint64_t begin = random() % 64;
      const uint64_t end = begin + random() % (65 - begin);
      const uint64_t first = random() % 1000;
      const bool erased = random() % 3 == 0;
      if (erased) {
        map.erase(begin, end);
      } else {
        map.assign(begin, end, {first});
      }
      for (uint64_t i = begin; i < end; ++i) array[i] = erased ? -1 : static_cast<int64_t>(first + i - begin);
    }
    for (uint64_t i = 0; i < array.size(); ++i) {
      const auto found = map.find(i);
      CHECK((found ? static_cast<int64_t>(found->value.first) : -1) == array[i]);
    }
  }
}

}  // namespace
}  // namespace softkfd
