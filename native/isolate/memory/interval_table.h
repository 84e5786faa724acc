// Records that belong to ranges of addresses which do not overlap.
#pragma once

#include <optional>

#include "memory/mapped_array.h"

namespace rpl::isolate {

// `Record` has `base` and `size`, the addresses that belong to it. Nothing here allocates by malloc.
template <typename Record>
class IntervalTable {
 public:
  explicit IntervalTable(size_t most) : records_(most), order_(most), unused_(most) {}

  // What overlaps it goes: the memory was given anew, so that somebody gave it back unseen. False: no room.
  bool insert(const Record& record) {
    const size_t place = first_behind(record.base);
    while (place < order_.size() && in_order(place).base < record.base + record.size) erase(place);
    uint32_t number = 0;
    if (unused_.size() != 0) {
      number = unused_[unused_.size() - 1];
      unused_.erase(unused_.size() - 1);
      records_[number] = record;
    } else {
      number = static_cast<uint32_t>(records_.size());
      if (!records_.append(record)) return false;
    }
    return order_.insert(place, number);
  }

  // The record whose range begins there, taken out.
  std::optional<Record> take(uint64_t base) {
    const size_t at = first_behind(base);
    if (at == order_.size() || in_order(at).base != base) return std::nullopt;
    const Record found = in_order(at);
    erase(at);
    return found;
  }

  // The record that holds the address.
  Record* find(uint64_t address) {
    const size_t at = first_behind(address);
    return at < order_.size() && in_order(at).base <= address ? &in_order(at) : nullptr;
  }

  // The first record that touches [base, base + size).
  Record* first_in(uint64_t base, uint64_t size) {
    const size_t at = first_behind(base);
    return at < order_.size() && in_order(at).base < base + size ? &in_order(at) : nullptr;
  }

  // In the order of addresses, those that touch [base, base + size).
  template <typename Visit>
  void visit(uint64_t base, uint64_t size, Visit visit) {
    for (size_t at = first_behind(base); at < order_.size() && in_order(at).base < base + size; ++at) {
      visit(in_order(at));
    }
  }
  template <typename Visit>
  void visit_all(Visit visit) {
    for (const uint32_t number : order_) visit(records_[number]);
  }

  [[nodiscard]] size_t size() const { return order_.size(); }

 private:
  Record& in_order(size_t at) { return records_[order_[at]]; }
  // The first that ends behind the address.
  size_t first_behind(uint64_t address) {
    const auto* const found =
        std::partition_point(order_.begin(), order_.end(), [this, address](uint32_t number) {
          return records_[number].base + records_[number].size <= address;
        });
    return static_cast<size_t>(found - order_.begin());
  }
  void erase(size_t at) {
    unused_.append(order_[at]);  // never more than there are records: there is room
    order_.erase(at);
  }

  MappedArray<Record> records_;
  MappedArray<uint32_t> order_;
  MappedArray<uint32_t> unused_;
};

}  // namespace rpl::isolate
