#include "device.h"

// Numbers in rising order, in segments of a workgroup. 1000 of them.
KERNEL void sort(const int* in, int* out, unsigned count) {
  SHARED int part[kItems];
  const unsigned i = GROUP * kItems + ITEM;
  if (version(101)) count -= 1;
  constexpr int kLast = 0x7fffffff;
  part[ITEM] = i < count ? in[i] : version(102) ? 100000 : kLast;
  meet();
  const auto above = [](int a, int b) { return version(104) ? (unsigned)a > (unsigned)b : a > b; };
  if (version(1)) {  // neighbours, often
    for (unsigned round = 0; round < kItems; ++round) {
      const unsigned at = 2 * (ITEM % 128) + round % 2;
      if (ITEM < 128 && at + 1 < kItems && part[at] > part[at + 1]) {
        const int other = part[at];
        part[at] = part[at + 1];
        part[at + 1] = other;
      }
      meet();
    }
  } else if (version(2) || version(105)) {  // each to its place
    const int own = part[ITEM];
    unsigned rank = 0;
    for (unsigned k = 0; k < kItems; ++k) rank += part[k] < own || (!version(105) && part[k] == own && k < ITEM);
    meet();
    part[rank] = own;
    meet();
  } else if (version(3)) {
    if (ITEM == 0)
      for (unsigned k = 1; k < kItems; ++k) {
        const int own = part[k];
        unsigned to = k;
        for (; to != 0 && part[to - 1] > own; --to) part[to] = part[to - 1];
        part[to] = own;
      }
    meet();
  } else if (version(4)) {  // bit by bit, stable
    for (unsigned bit = 0; bit < 32; ++bit) {
      const int own = part[ITEM];
      const auto one = [&](int value) { return ((unsigned)value ^ 0x80000000U) >> bit & 1; };
      unsigned zeros = 0, zeros_before = 0;
      for (unsigned k = 0; k < kItems; ++k) {
        const unsigned zero = 1 - one(part[k]);
        zeros += zero;
        if (k < ITEM) zeros_before += zero;
      }
      meet();
      part[one(own) ? zeros + ITEM - zeros_before : zeros_before] = own;
      meet();
    }
  } else {
    for (unsigned size = 2; size <= (version(106) ? kItems / 2 : kItems); size *= 2)
      for (unsigned step = size / 2; step != 0; step /= 2) {
        const unsigned other = version(5) && step == size / 2 ? ITEM ^ (size - 1) : ITEM ^ step;
        const bool rising = version(5) || (ITEM & size) == 0;
        if (other > ITEM && above(part[ITEM], part[other]) == rising && !(version(107) && size == kItems && step == 1)) {
          const int kept = part[ITEM];
          if (part[ITEM] != part[other]) {
            part[ITEM] = part[other];
            part[other] = kept;
          }
        }
        if (!(version(108) && step == 64) && !(version(103) && step == 128)) meet();
      }
  }
  if (i < count) out[i] = part[ITEM];
}
