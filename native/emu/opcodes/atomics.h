// What atomics do with the old value and the operand, for memory and for LDS.
#pragma once

#include "opcodes/memory_access.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {

inline constexpr auto kSwap = [](auto, auto b) { return b; };
inline constexpr auto kAdd = [](auto a, auto b) { return a + b; };
inline constexpr auto kSub = [](auto a, auto b) { return a - b; };
inline constexpr auto kReverseSub = [](auto a, auto b) { return b - a; };
inline constexpr auto kMin = [](auto a, auto b) { return b < a ? b : a; };
inline constexpr auto kMax = [](auto a, auto b) { return a < b ? b : a; };
inline constexpr auto kAnd = [](auto a, auto b) { return a & b; };
inline constexpr auto kOr = [](auto a, auto b) { return a | b; };
inline constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
inline constexpr auto kInc = [](auto a, auto b) { return a >= b ? decltype(a){0} : a + 1; };
inline constexpr auto kDec = [](auto a, auto b) { return a == 0 || a > b ? b : a - 1; };
inline constexpr auto kMinFloat = [](auto a, auto b) { return minimum(a, b); };
inline constexpr auto kMaxFloat = [](auto a, auto b) { return maximum(a, b); };
inline constexpr auto kAddHalves = [](uint32_t a, uint32_t b) {
  return to_half(from_half(a & 0xffff) + from_half(b & 0xffff)) |
         to_half(from_half(a >> 16) + from_half(b >> 16)) << 16;
};
inline constexpr auto kAddBfloats = [](uint32_t a, uint32_t b) {
  return to_bfloat(from_bfloat(a & 0xffff) + from_bfloat(b & 0xffff)) |
         to_bfloat(from_bfloat(a >> 16) + from_bfloat(b >> 16)) << 16;
};

// Lanes one after the other, the lowest first. Hardware takes any order.
template <class T, auto F>
inline void atomic_lanes(Wave&, const Addresses& at, uint64_t exec, const uint32_t* data, uint32_t* old_to) {
  using Bits = std::conditional_t<kWide<T>, uint64_t, uint32_t>;
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const T operand = lane_get<T>(data, j);
    const Bits old = update<Bits>(at.of[j], [&](Bits now) {
      return std::bit_cast<Bits>(static_cast<T>(F(std::bit_cast<T>(now), operand)));
    });
    if (old_to) lane_put<Bits>(old_to, j, old);
  }
}

// `data` holds the new value, then what is expected.
template <class T>
inline void compare_swap_lanes(const Addresses& at, uint64_t lanes, const uint32_t* data, uint32_t* old_to) {
  for (uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    const T next = lane_get<T>(data, j), expected = lane_get<T>(data + kLanes * sizeof(T) / 4, j);
    const T old = update<T>(at.of[j], [&](T now) { return now == expected ? next : now; });
    if (old_to) lane_put<T>(old_to, j, old);
  }
}

// Atomics need their natural alignment.
inline bool at_odd_place(Wave& w, const Addresses& at, uint64_t exec, unsigned bytes) {
  for (uint64_t rest = exec; rest != 0; rest &= rest - 1) {
    const auto j = static_cast<unsigned>(std::countr_zero(rest));
    if (at.of[j] % bytes == 0) continue;
    w.fault(at.of[j], j, true, "an atomic at an address that is not aligned");
    return true;
  }
  return false;
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD
