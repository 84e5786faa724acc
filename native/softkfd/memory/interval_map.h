// Disjoint half-open intervals [begin, end) of addresses, each with a value.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace softkfd {

// `Value` says by `Value later(uint64_t bytes) const` what it is that many bytes further on, so that an
// interval can lose its head or its middle.
template <typename Value>
class IntervalMap {
 public:
  struct Interval {
    uint64_t begin = 0;
    uint64_t end = 0;
    Value value{};
  };

  // What lies there already is replaced.
  void assign(uint64_t begin, uint64_t end, const Value& value) {
    erase(begin, end);
    if (begin < end) parts_.emplace(begin, Part{end, value});
  }

  void erase(uint64_t begin, uint64_t end) {
    for (const Interval& old : overlapping(begin, end)) {
      parts_.erase(old.begin);
      if (old.begin < begin) parts_.emplace(old.begin, Part{begin, old.value});
      if (end < old.end) parts_.emplace(end, Part{old.end, old.value.later(end - old.begin)});
    }
  }

  // The part from `address` to the end of its interval.
  [[nodiscard]] std::optional<Interval> find(uint64_t address) const {
    auto after = parts_.upper_bound(address);
    if (after == parts_.begin()) return std::nullopt;
    const auto& [begin, part] = *std::prev(after);
    if (part.end <= address) return std::nullopt;
    return Interval{address, part.end, part.value.later(address - begin)};
  }

  // Whole intervals, in order of their begins.
  [[nodiscard]] std::vector<Interval> overlapping(uint64_t begin, uint64_t end) const {
    std::vector<Interval> found;
    if (begin >= end) return found;
    auto place = parts_.upper_bound(begin);
    if (place != parts_.begin() && std::prev(place)->second.end > begin) --place;
    for (; place != parts_.end() && place->first < end; ++place) {
      found.push_back(Interval{place->first, place->second.end, place->second.value});
    }
    return found;
  }

  [[nodiscard]] size_t size() const { return parts_.size(); }

 private:
  struct Part {
    uint64_t end;
    Value value;
  };
  std::map<uint64_t, Part> parts_;
};

}  // namespace softkfd
