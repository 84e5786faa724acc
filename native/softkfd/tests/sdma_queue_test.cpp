#include "queue/sdma_queue.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <numeric>

#include "tests/gpu_fixture.h"

namespace softkfd {
namespace {

constexpr uint64_t kFrom = GpuFixture::kData;
constexpr uint64_t kTo = GpuFixture::kData + 0x10000;

constexpr uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

struct SdmaFixture : GpuFixture {
  SdmaFixture() { ring.bytes = 4096; }

  void put(std::initializer_list<uint32_t> words) {
    for (const uint32_t word : words) {
      at<uint32_t>(kRing + written % ring.bytes) = word;
      written += sizeof(word);
    }
    doorbell = written;
  }
  uint64_t written = 0;
};

TEST_CASE_FIXTURE(SdmaFixture, "a copy, a fence, a countdown and an interrupt are done in turn") {
  SdmaQueue queue(parts, ring);
  const uint32_t event = events.create(EventType::kSignal, false).value();
  const uint64_t done = signal(0, 1);
  at<uint64_t>(kFrom) = 0x1122334455667788;
  put({1, 7, 0, low(kFrom), high(kFrom), low(kTo), high(kTo)});
  put({5, low(kTo + 8), high(kTo + 8), 77});
  put({10U | (47U << 25), low(done + 8), high(done + 8), 0xffffffff, 0xffffffff, 0, 0, 0});
  put({6, event});
  for (int i = 0; i < 4; ++i) CHECK(queue.step());
  CHECK_FALSE(queue.step());
  CHECK(at<uint64_t>(kTo) == 0x1122334455667788);
  CHECK(at<uint32_t>(kTo + 8) == 77);
  CHECK(at<Signal>(done).value == 0);
  CHECK(*ring.read_index == written);
  std::array<Events::Waited, 1> waited = {Events::Waited{event, 0, {}}};
  CHECK(events.wait(waited, true, std::chrono::milliseconds(0)) == Events::Outcome::kReady);
}

TEST_CASE_FIXTURE(SdmaFixture, "polling holds the ring until memory has the value") {
  SdmaQueue queue(parts, ring);
  at<uint32_t>(kFrom) = 5;
  put({8U | (3U << 28) | (1U << 31), low(kFrom), high(kFrom), 0, 0xffffffff, 0});
  put({8U | (1U << 26), 0, 0, 0, 0, 0});  // the flush of a cache: a register
  CHECK_FALSE(queue.step());
  at<uint32_t>(kFrom) = 0;
  CHECK(queue.step());
  CHECK(queue.step());
}

TEST_CASE_FIXTURE(SdmaFixture,
                  "a fill writes words, a no-operation skips them, a timestamp is the GPU's time") {
  SdmaQueue queue(parts, ring);
  put({11U | (2U << 30), low(kTo), high(kTo), 0xabcd, 3 * 4});
  put({0U | (2U << 16), 1, 2});
  put({13U | (2U << 8), low(kFrom), high(kFrom)});
  for (int i = 0; i < 3; ++i) CHECK(queue.step());
  CHECK(at<uint32_t>(kTo + 12) == 0xabcd);
  CHECK(at<uint32_t>(kTo + 16) == 0);
  CHECK(at<uint64_t>(kFrom) <= gpu_ticks());
  CHECK(at<uint64_t>(kFrom) > 0);
}

TEST_CASE_FIXTURE(SdmaFixture, "a rectangle is moved row by row, in elements") {
  SdmaQueue queue(parts, ring);
  std::iota(&at<uint32_t>(kFrom), &at<uint32_t>(kFrom) + 64, 0);
  // 3 x 2 elements of 4 bytes from (1, 1) of rows of 8 to (0, 2) of rows of 16.
  put({1U | (4U << 8) | (2U << 29), low(kFrom), high(kFrom), 1 | (1U << 16), 7U << 13, 63, low(kTo),
       high(kTo), 2U << 16, 15U << 13, 255, 2 | (1U << 16), 0});
  CHECK(queue.step());
  CHECK(at<uint32_t>(kTo + 4 * (2 * 16)) == 9);
  CHECK(at<uint32_t>(kTo + 4 * (2 * 16 + 2)) == 11);
  CHECK(at<uint32_t>(kTo + 4 * (2 * 16 + 3)) == 0);
  CHECK(at<uint32_t>(kTo + 4 * (3 * 16)) == 17);
}

TEST_CASE_FIXTURE(SdmaFixture, "the picked copy faults and unknown packets are refused") {
  faults.parse("copy=2");
  SdmaQueue queue(parts, ring);
  put({1, 7, 0, low(kFrom), high(kFrom), low(kTo), high(kTo)});
  CHECK(queue.step());
  put({1, 7, 0, low(kFrom), high(kFrom), low(kTo), high(kTo)});
  CHECK_FALSE(queue.step());
  SdmaQueue other(parts, ring);
  at<uint32_t>(kRing) = 99;
  CHECK_THROWS_WITH(other.step(), doctest::Contains("DMA packet"));
}

}  // namespace
}  // namespace softkfd
