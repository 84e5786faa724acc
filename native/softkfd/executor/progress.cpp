#include "executor/progress.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace softkfd {
namespace {

constexpr auto kFirst = std::chrono::seconds(2);
constexpr auto kNext = std::chrono::milliseconds(500);
constexpr std::string_view kCleared = "\x1b[K";

// 1250000 -> "1.25 M"
std::string shortened(double value) {
  constexpr std::array kUnits = {"", " K", " M", " G", " T"};
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.3g%s", value, kUnits.at(unit));
  return text.data();
}

void put(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Progress::Progress(bool shown) {
  if (!shown || isatty(STDERR_FILENO) == 0) return;
  std::thread([this] { show(); }).detach();
}

std::string Progress::line(uint64_t before, double seconds) const {
  const uint64_t now = instructions_;
  const uint64_t launches = launches_;
  return std::to_string(launches) + (launches == 1 ? " launch, " : " launches, ") +
         shortened(static_cast<double>(now)) + " wave instructions, " +
         shortened(static_cast<double>(now - before) / seconds) + "/s";
}

// The cursor goes back to the begin of the line, so that whatever the program writes lies over it.
void Progress::show() const {
  std::this_thread::sleep_for(kFirst);
  (void)std::atexit([] { put(kCleared); });
  for (uint64_t before = instructions_;;) {
    std::this_thread::sleep_for(kNext);
    const uint64_t now = instructions_;
    if (now != before) put("emulator: " + line(before, std::chrono::duration<double>(kNext).count()) + std::string(kCleared) + "\r");
    before = now;
  }
}

}  // namespace softkfd
