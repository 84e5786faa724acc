#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "memory/address_ranges.h"
#include "memory/content_file.h"
#include "plan/failure.h"

using namespace rpl::replay;

namespace {

constexpr uint64_t kFree = 0x200000000000;  // behind the shadow memory of sanitizers

Content content(uint64_t address, uint64_t size, uint32_t gpu = 0) { return {{address, size}, "", gpu}; }

std::vector<Range> ranges(const std::vector<Pages>& pages) {
  std::vector<Range> found;
  found.reserve(pages.size());
  for (const Pages& one : pages) found.push_back(one.range);
  return found;
}

bool same(const std::vector<Range>& left, const std::vector<Range>& right) {
  return std::ranges::equal(left, right, [](const Range& a, const Range& b) {
    return a.address == b.address && a.size == b.size;
  });
}

}  // namespace

TEST_CASE("contents become whole pages, and those that meet become one") {
  CHECK(same(ranges(pages_of({content(kFree + 100, 10)})), {{kFree, 4096}}));
  CHECK(same(ranges(pages_of({content(kFree + 4096, 4096), content(kFree, 4096)})), {{kFree, 8192}}));
  CHECK(same(ranges(pages_of({content(kFree, 100), content(kFree + 200, 4096)})), {{kFree, 8192}}));
  CHECK(same(ranges(pages_of({content(kFree, 4096), content(kFree + 8192, 1)})),
             {{kFree, 4096}, {kFree + 8192, 4096}}));
  // Those of two GPUs stay apart unless they share a page.
  CHECK(pages_of({content(kFree, 4096, 0), content(kFree + 4096, 4096, 1)}).size() == 2);
  CHECK(pages_of({content(kFree, 4097, 0), content(kFree + 5000, 10, 1)}).size() == 1);
  const auto pieces = pages_of({content(kFree, kLargestPiece), content(kFree + kLargestPiece, 5)});
  CHECK(same(ranges(pieces), {{kFree, kLargestPiece}, {kFree + kLargestPiece, 4096}}));
  CHECK_THROWS(pages_of({content(kFree, 0)}));
  CHECK_THROWS(pages_of({content(UINT64_MAX - 100, 50)}));
}

TEST_CASE("held pages are nobody else's, and what is taken is told") {
  const std::vector<Pages> wanted = pages_of({content(kFree, 4096), content(kFree + 65536, 4096)});
  {
    HeldPages held(wanted);
    CHECK_FALSE(held.taken());
    HeldPages second(wanted);
    REQUIRE(second.taken());
    CHECK(second.taken()->address == kFree);
    CHECK_FALSE(occupant_of(wanted[0].range).empty());
    held.release(wanted[0].range);
    CHECK(occupant_of(wanted[0].range).empty());
    CHECK_FALSE(occupant_of(wanted[1].range).empty());
  }
  CHECK(occupant_of(wanted[1].range).empty());
}

TEST_CASE("holes of a file are known, and what lies behind its end is zeros") {
  char name[] = "content-XXXXXX";
  const int file = mkstemp(name);
  constexpr off_t kMebibyte = 1 << 20;
  REQUIRE(pwrite(file, "tail", 4, 2 * kMebibyte) == 4);
  std::vector<std::byte> bytes(kMebibyte, std::byte{7});
  {
    ContentFile content(name);
    CHECK_FALSE(content.read(0, bytes));
    CHECK(bytes[0] == std::byte{7});
    CHECK(content.read(2 * kMebibyte, bytes));
    CHECK(std::memcmp(bytes.data(), "tail", 4) == 0);
    CHECK(bytes[4] == std::byte{0});
    CHECK_FALSE(content.read(3 * kMebibyte, bytes));
    CHECK_FALSE(content.read(0, bytes));  // again, from the beginning
  }
  close(file);
  unlink(name);
  CHECK_THROWS_AS(ContentFile("absent"), Failure);
}
