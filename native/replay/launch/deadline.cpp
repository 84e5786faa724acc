#include "launch/deadline.h"

#include <utility>

namespace rpl::replay {

Deadline::Deadline(std::optional<uint64_t> limit_ns, Passed passed) : passed_(std::move(passed)) {
  if (!limit_ns) return;
  limit_ = std::chrono::nanoseconds(*limit_ns);
  end_ = Clock::now() + limit_;
  thread_ = std::thread([this] { wait(); });
}

Deadline::~Deadline() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Deadline::again() {
  const std::scoped_lock lock(mutex_);
  end_ += limit_;
}

void Deadline::wait() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (Clock::now() >= end_) {
      passed_(during_);
      return;
    }
    changed_.wait_until(lock, end_);
  }
}

}  // namespace rpl::replay
