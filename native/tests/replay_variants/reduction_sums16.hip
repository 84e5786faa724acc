#include "device.h"

// One sum for each workgroup, as in reduction.hip, but of halves and in halves; the result is a float.
KERNEL void reduction_sums16(const half* values, float* sums, unsigned count) {
  SHARED half part[kItems];
  const unsigned i = GROUP * kItems + ITEM;
  if (version(101)) count -= 1;
  if (version(102)) count = count / kItems * kItems;
  half own = i < count ? values[i] : (half)(version(103) ? 0.5f : 0.0f);
  if (version(106) && own < 0) own = 0;
  if (version(107) && ITEM == 77) own *= (half)2;
  part[ITEM] = own;
  if (!version(104)) meet();
  if (version(1) || version(2) || version(3) || version(108)) {
    if (ITEM != 0) return;
    half sum = 0;
    float wide = 0;
    for (unsigned k = version(108) ? 1 : 0; k < kItems; ++k) {
      sum += part[version(2) ? kItems - 1 - k : k];
      wide += (float)part[k];
    }
    sums[GROUP] = version(3) ? wide : (float)sum;
    return;
  }
  if (version(4)) {
    SHARED float of_wave[4];
    float sum = own;
    for (unsigned step = 32; step != 0; step /= 2) sum += of_lane(sum, lane() ^ step);
    if (lane() == 0) of_wave[ITEM / 64] = sum;
    meet();
    if (ITEM == 0) sums[GROUP] = of_wave[0] + of_wave[1] + of_wave[2] + of_wave[3];
    return;
  }
  if (version(5)) {  // neighbours first
    for (unsigned step = 1; step < kItems; step *= 2) {
      if (ITEM % (2 * step) == 0) part[ITEM] += part[ITEM + step];
      meet();
    }
    if (ITEM == 0) sums[GROUP] = (float)part[0];
    return;
  }
  for (unsigned step = kItems / 2; step != (version(105) ? 1 : 0); step /= 2) {
    if (ITEM < step) part[ITEM] += part[ITEM + step];
    meet();
  }
  if (ITEM == 0) sums[GROUP] = (float)part[0];
}
