// One limit for the whole replay: runtimes wait without one inside of their own functions, where nobody looks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace rpl::replay {

class Deadline {
 public:
  // Calls `passed` with what was being done, in a thread of its own. It must not return.
  using Passed = std::function<void(const char* during)>;
  Deadline(std::optional<uint64_t> limit_ns, Passed passed);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // What is being done from now on, for people.
  void during(const char* what) { during_ = what; }
  // All of it is done a second time.
  void again();

 private:
  void wait();

  using Clock = std::chrono::steady_clock;
  std::chrono::nanoseconds limit_{0};
  Passed passed_;
  std::atomic<const char*> during_{"while the runtime started"};
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point end_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace rpl::replay
