#include "queue/faults.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace softkfd {
namespace {

using std::chrono::milliseconds;

TEST_CASE("knobs are taken together") {
  Faults faults;
  faults.parse("slow=30:softmax,lost=2,reserve=relocate");
  CHECK(faults.delay("softmax") == milliseconds(30));
  CHECK(faults.delay("other") == milliseconds(0));
  CHECK_FALSE(faults.lost_completion.now());
  CHECK(faults.lost_completion.now());
  CHECK_FALSE(faults.lost_completion.now());
  CHECK_FALSE(faults.failing_map.now());
  CHECK(faults.reservation == Reservation::kRelocated);
}

TEST_CASE("what is no knob is named") {
  for (const char* text : {"slow", "slow=x", "nap=1", "reserve=maybe", "map=-1"}) {
    Faults faults;
    CHECK_THROWS_AS(faults.parse(text), std::invalid_argument);
  }
}

}  // namespace
}  // namespace softkfd
