// Barriers, lanes and atomics of the emulation.
#pragma once

inline void __syncthreads() { rpl_hip::wait(rpl_hip::State::AtBlock); }
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace rpl_hip {
inline unsigned own_lane() { return grid.current % kLanes; }

// Give `value` to the wave and wait for it; returns the number of this exchange. Finished lanes give nothing.
template <class T> unsigned exchange(T value) {
  static_assert(sizeof(T) <= sizeof(Slot::bytes[0]));
  Slot& mine = slots[grid.current];
  unsigned round = ++mine.round;
  memcpy(mine.bytes[round % 2], &value, sizeof(T));
  mine.given[round % 2] = round;
  wait(State::AtWave);
  return round;
}
template <class T> bool given(unsigned item, unsigned round, T* value) {
  if (item >= grid.count || slots[item].given[round % 2] != round) return false;
  memcpy(value, slots[item].bytes[round % 2], sizeof(T));
  return true;
}
template <class T> T from_lane(T value, int lane) {
  unsigned item = grid.current - own_lane() + unsigned(lane);
  given(item, exchange(value), &value);
  return value;
}
}  // namespace rpl_hip

template <class T> T __shfl(T value, int source, int width = 64) {
  return rpl_hip::from_lane(value, (source & (width - 1)) + (int(rpl_hip::own_lane()) & ~(width - 1)));
}
template <class T> T __shfl_xor(T value, int mask, int width = 64) {
  int self = int(rpl_hip::own_lane()), other = self ^ mask;
  return rpl_hip::from_lane(value, other >= ((self + width) & ~(width - 1)) ? self : other);
}
template <class T> T __shfl_down(T value, unsigned by, int width = 64) {
  int self = int(rpl_hip::own_lane());
  return rpl_hip::from_lane(value, int((self & (width - 1)) + by) >= width ? self : self + int(by));
}
template <class T> T __shfl_up(T value, unsigned by, int width = 64) {
  int self = int(rpl_hip::own_lane());
  return rpl_hip::from_lane(value, (self & (width - 1)) < int(by) ? self : self - int(by));
}
inline uint64_t __ballot(int predicate) {
  unsigned first = rpl_hip::grid.current - rpl_hip::own_lane(), round = rpl_hip::exchange(int(predicate != 0));
  uint64_t found = 0;
  for (unsigned i = 0; i < rpl_hip::kLanes; ++i) {
    int lane = 0;
    if (rpl_hip::given(first + i, round, &lane) && lane) found |= uint64_t(1) << i;
  }
  return found;
}
inline int __any(int predicate) { return __ballot(predicate) != 0; }
inline int __all(int predicate) { return __ballot(predicate == 0) == 0; }

#define RPL_HIP_ATOMIC(name, result)                      \
  template <class T> T name(T* place, T value) {            \
    T before = *place;                                      \
    *place = result;                                        \
    return before;                                          \
  }
RPL_HIP_ATOMIC(atomicAdd, before + value)
RPL_HIP_ATOMIC(atomicMin, value < before ? value : before)
RPL_HIP_ATOMIC(atomicMax, before < value ? value : before)
RPL_HIP_ATOMIC(atomicAnd, before & value)
RPL_HIP_ATOMIC(atomicOr, before | value)
RPL_HIP_ATOMIC(atomicXor, before ^ value)
RPL_HIP_ATOMIC(atomicExch, value)
#undef RPL_HIP_ATOMIC
template <class T> T atomicCAS(T* place, T expected, T value) {
  T before = *place;
  if (before == expected) *place = value;
  return before;
}
