#include "queue/faults.h"

#include <charconv>
#include <stdexcept>

namespace softkfd {
namespace {

uint64_t number(std::string_view knob, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument("fault knob '" + std::string(knob) + "' takes a number, not '" +
                                std::string(text) + "'");
  }
  return value;
}

}  // namespace

void Faults::parse(std::string_view text) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument("fault knob '" + std::string(one) + "' has no value");
    }
    set(one.substr(0, equals), one.substr(equals + 1));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
}

void Faults::set(std::string_view knob, std::string_view value) {
  if (knob == "slow") {
    const size_t colon = value.find(':');
    slow_ = std::chrono::milliseconds(number(knob, value.substr(0, colon)));
    slow_kernel_ = colon == std::string_view::npos ? "" : value.substr(colon + 1);
  } else if (knob == "lost") {
    lost_completion.pick(number(knob, value));
  } else if (knob == "map") {
    failing_map.pick(number(knob, value));
  } else if (knob == "copy") {
    failing_copy.pick(number(knob, value));
  } else if (knob == "version") {
    interface_minor = static_cast<uint32_t>(number(knob, value));
  } else if (knob == "reserve" && value == "relocate") {
    reservation = Reservation::kRelocated;
  } else if (knob == "reserve" && value == "refuse") {
    reservation = Reservation::kRefused;
  } else {
    throw std::invalid_argument("no fault knob '" + std::string(knob) + "=" + std::string(value) + "'");
  }
}

std::chrono::milliseconds Faults::delay(std::string_view kernel) const {
  return slow_kernel_.empty() || kernel == slow_kernel_ ? slow_ : std::chrono::milliseconds(0);
}

}  // namespace softkfd
