#include "queue/events.h"

#include <algorithm>

namespace softkfd {
namespace {

constexpr uint32_t kMostEvents = 4096;  // KFD_SIGNAL_EVENT_LIMIT: slots of the event page

}  // namespace

std::optional<uint32_t> Events::create(EventType type, bool auto_reset) {
  const std::scoped_lock lock(mutex_);
  for (uint32_t id = 1; id < kMostEvents; ++id) {
    if (events_.contains(id)) continue;
    Event event;
    event.type = type;
    event.auto_reset = auto_reset;
    events_.emplace(id, event);
    return id;
  }
  return std::nullopt;
}

bool Events::destroy(uint32_t id) {
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
  return events_.erase(id) == 1;
}

bool Events::set(uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second.signalled = true;
  ++found->second.age;
  changed_.notify_all();
  return true;
}

bool Events::reset(uint32_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second.signalled = false;
  return true;
}

void Events::interrupt(uint32_t data) {
  constexpr uint32_t kKnown = 0xff;
  const std::scoped_lock lock(mutex_);
  for (auto& [id, event] : events_) {
    if (event.type != EventType::kSignal || (id & kKnown) != (data & kKnown)) continue;
    event.signalled = true;
    ++event.age;
  }
  changed_.notify_all();
}

void Events::raise(const MemoryFault& fault) {
  const std::scoped_lock lock(mutex_);
  for (auto& [id, event] : events_) {
    if (event.type != EventType::kMemory) continue;
    event.signalled = true;
    event.fault = fault;
    ++event.age;
  }
  changed_.notify_all();
}

bool Events::is_ready(const Event& event, const Waited& waited) {
  // A caller that tells what it has seen misses nothing, even what came and was taken before it waited.
  const bool newer = waited.age != 0 && waited.age != event.age;
  return event.signalled || (event.type == EventType::kSignal && newer);
}

bool Events::ready(std::span<Waited> waited, bool all) const {
  const auto one = [this](const Waited& wanted) {
    const auto found = events_.find(wanted.id);
    return found == events_.end() || is_ready(found->second, wanted);
  };
  return all ? std::ranges::all_of(waited, one) : std::ranges::any_of(waited, one);
}

void Events::collect(std::span<Waited> waited) {
  for (Waited& wanted : waited) {
    const auto found = events_.find(wanted.id);
    if (found == events_.end()) continue;
    Event& event = found->second;
    if (!is_ready(event, wanted)) continue;
    if (wanted.age != 0) wanted.age = event.age;
    wanted.fault = event.fault;
    if (event.auto_reset) event.signalled = false;
  }
}

Events::Outcome Events::wait(std::span<Waited> waited, bool all,
                             std::optional<std::chrono::milliseconds> limit) {
  std::unique_lock lock(mutex_);
  const auto known = [this](const Waited& wanted) { return events_.contains(wanted.id); };
  if (!std::ranges::all_of(waited, known)) return Outcome::kUnknownEvent;
  const auto done = [&] { return ready(waited, all); };
  if (!limit) {
    changed_.wait(lock, done);
  } else if (!changed_.wait_for(lock, *limit, done)) {
    return Outcome::kTimeout;
  }
  collect(waited);
  return std::ranges::all_of(waited, known) ? Outcome::kReady : Outcome::kUnknownEvent;
}

}  // namespace softkfd
