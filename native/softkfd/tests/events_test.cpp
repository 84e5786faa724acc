#include "queue/events.h"

#include <doctest/doctest.h>

#include <array>
#include <thread>

namespace softkfd {
namespace {

using std::chrono::milliseconds;
using Waited = Events::Waited;

TEST_CASE("one event of several wakes who waits for any, all of them who waits for all") {
  Events events;
  const uint32_t first = events.create(EventType::kSignal, true).value();
  const uint32_t second = events.create(EventType::kSignal, true).value();
  std::array<Waited, 2> both = {Waited{first, 0, {}}, Waited{second, 0, {}}};
  CHECK(events.wait(both, false, milliseconds(0)) == Events::Outcome::kTimeout);
  std::thread other([&] { events.set(second); });
  CHECK(events.wait(both, false, std::nullopt) == Events::Outcome::kReady);
  other.join();
  CHECK(events.wait(both, false, milliseconds(0)) == Events::Outcome::kTimeout);  // taken: it resets itself
  events.set(first);
  CHECK(events.wait(both, true, milliseconds(0)) == Events::Outcome::kTimeout);
  events.set(second);
  CHECK(events.wait(both, true, milliseconds(0)) == Events::Outcome::kReady);
}

TEST_CASE("an event that does not reset itself stays until it is reset") {
  Events events;
  std::array<Waited, 1> waited = {Waited{events.create(EventType::kSignal, false).value(), 0, {}}};
  events.set(waited[0].id);
  CHECK(events.wait(waited, true, milliseconds(0)) == Events::Outcome::kReady);
  CHECK(events.wait(waited, true, milliseconds(0)) == Events::Outcome::kReady);
  events.reset(waited[0].id);
  CHECK(events.wait(waited, true, milliseconds(0)) == Events::Outcome::kTimeout);
}

TEST_CASE("who tells the age that they saw misses nothing that another has taken") {
  Events events;
  const uint32_t id = events.create(EventType::kSignal, true).value();
  std::array<Waited, 1> slow = {Waited{id, 1, {}}};
  std::array<Waited, 1> quick = {Waited{id, 0, {}}};
  events.set(id);
  CHECK(events.wait(quick, true, milliseconds(0)) == Events::Outcome::kReady);
  CHECK(events.wait(slow, true, milliseconds(0)) == Events::Outcome::kReady);
  CHECK(slow[0].age == 2);
  CHECK(events.wait(slow, true, milliseconds(0)) == Events::Outcome::kTimeout);
}

TEST_CASE("a memory fault reaches who waits for faults, with its address") {
  Events events;
  std::array<Waited, 1> faults = {Waited{events.create(EventType::kMemory, false).value(), 0, {}}};
  std::array<Waited, 1> signals = {Waited{events.create(EventType::kSignal, false).value(), 0, {}}};
  events.raise({0x1000, 7, false, false});
  CHECK(events.wait(signals, true, milliseconds(0)) == Events::Outcome::kTimeout);
  CHECK(events.wait(faults, true, milliseconds(0)) == Events::Outcome::kReady);
  CHECK(faults[0].fault->address == 0x1000);
}

TEST_CASE("waiting for what was destroyed ends") {
  Events events;
  const uint32_t id = events.create(EventType::kSignal, false).value();
  std::array<Waited, 1> waited = {Waited{id, 0, {}}};
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(5));
    events.destroy(id);
  });
  CHECK(events.wait(waited, true, std::nullopt) == Events::Outcome::kUnknownEvent);
  other.join();
  CHECK_FALSE(events.set(id));
}

}  // namespace
}  // namespace softkfd
