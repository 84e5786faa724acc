#include "driver/process.h"

#include <dlfcn.h>
#include <sysexits.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include "topology/device.h"

namespace softkfd {
namespace {

[[noreturn]] void end_process(const std::string& sentence, int status) {
  const std::string line = "softkfd: " + sentence + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(status);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

uint32_t wanted_gpus() {
  const std::string text = variable("SOFTKFD_GPUS");
  if (text.empty()) return 1;
  uint32_t gpus = 0;
  std::from_chars(text.data(), text.data() + text.size(), gpus);
  if (gpus < 1 || gpus > kMaxGpus) {
    end_process("SOFTKFD_GPUS is 1 or " + std::to_string(kMaxGpus) + ", not '" + text + "'", EX_USAGE);
  }
  return gpus;
}

// Of this process and all that it starts, by the monotonic clock in ns.
std::optional<std::chrono::steady_clock::time_point> deadline() {
  const std::string text = variable("SOFTKFD_DEADLINE_NS");
  int64_t end_ns = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), end_ns).ec != std::errc()) return std::nullopt;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(end_ns));
}

// A launch that is too long ends by itself and says where; this is for programs that wait for something else.
__attribute__((constructor)) void watch_time() {
  constexpr int kLimit = 124;
  constexpr auto kGrace = std::chrono::seconds(1);
  const auto end = deadline();
  if (!end) return;
  std::thread([until = *end + kGrace] {
    std::this_thread::sleep_until(until);
    end_process("the time limit was reached, and no kernel was running that could be named", kLimit);
  }).detach();
}

Settings settings_of_environment() {
  Settings settings;
  settings.gpus = wanted_gpus();
  settings.faults = variable("SOFTKFD_FAULTS");
  settings.log = variable("SOFTKFD_LOG");
  settings.emulator = variable("SOFTKFD_EMULATOR");
  settings.sanitize = !variable("SOFTKFD_SANITIZE").empty();
  settings.strict_decode = !variable("SOFTKFD_STRICT_DECODE").empty();
  settings.progress = !variable("SOFTKFD_PROGRESS").empty();
  settings.deadline = deadline();
  std::istringstream shadows(variable("SOFTKFD_SHADOWS"));
  for (std::string file; std::getline(shadows, file, ':');) settings.shadow_libraries.push_back(file);
  return settings;
}

Kfd* make_driver() {
  try {
    return new Kfd(settings_of_environment(),
                   [](const std::string& sentence) { end_process(sentence, EX_UNAVAILABLE); });
  } catch (const std::exception& error) {
    end_process(error.what(), EX_USAGE);
  }
}

struct Owned {
  std::mutex making;
  std::atomic<Kfd*> driver = nullptr;
  std::atomic<pid_t> owner = 0;
};

Owned& owned() {
  static Owned& state = *new Owned;
  return state;
}

}  // namespace

Kfd& process_driver() {
  Owned& state = owned();
  const std::scoped_lock lock(state.making);
  if (Kfd* driver = existing_driver()) return *driver;
  Kfd* made = make_driver();
  state.driver = made;
  state.owner = getpid();
  return *made;
}

// Without a lock: the making of a driver itself calls mmap, which asks here.
Kfd* existing_driver() {
  const Owned& state = owned();
  return state.owner == getpid() ? state.driver.load() : nullptr;
}

const std::string& topology_folder() {
  static const std::string& folder = *new std::string([] {
    Dl_info self{};
    dladdr(reinterpret_cast<const void*>(&topology_folder), &self);
    const auto beside = std::filesystem::path(self.dli_fname).parent_path();
    return (beside / "topology" / std::to_string(wanted_gpus())).string();
  }());
  return folder;
}

}  // namespace softkfd
