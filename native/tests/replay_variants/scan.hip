#include "device.h"

// Sums of all values up to each one, in segments of a workgroup. 1000 of them.
KERNEL void scan(const float* values, float* sums, unsigned count) {
  SHARED float part[2][kItems];
  SHARED float of_wave[4];
  const unsigned i = GROUP * kItems + ITEM;
  if (version(101)) count -= 1;
  if (version(102)) count = count / kItems * kItems;
  const float own = i < count ? values[i] : 0.0f;
  if (version(1)) {  // one work-item after the other
    part[0][ITEM] = own;
    meet();
    if (ITEM == 0)
      for (unsigned k = 1; k < kItems; ++k) part[0][k] += part[0][k - 1];
    meet();
    if (i < count) sums[i] = part[0][ITEM];
    return;
  }
  if (version(2)) {  // in double precision
    part[0][ITEM] = own;
    meet();
    double sum = 0;
    for (unsigned k = 0; k <= ITEM; ++k) sum += part[0][k];
    if (i < count) sums[i] = (float)sum;
    return;
  }
  if (version(3) || version(107) || version(108)) {  // waves, then their totals
    float sum = own;
    for (unsigned step = 1; step < 64; step *= 2) {
      const float before = of_lane(sum, lane() - step);
      if (lane() >= step) sum += before;
    }
    if (lane() == 63) of_wave[ITEM / 64] = sum;
    if (!version(107)) meet();
    for (unsigned k = 0; k < ITEM / 64 - (version(108) && ITEM / 64 == 3); ++k) sum += of_wave[k];
    if (i < count) sums[i] = sum;
    return;
  }
  if (version(4)) {  // up and down a tree
    part[0][ITEM] = own;
    meet();
    for (unsigned step = 1; step < kItems; step *= 2) {
      const unsigned at = (ITEM + 1) * 2 * step - 1;
      if (at < kItems) part[0][at] += part[0][at - step];
      meet();
    }
    for (unsigned step = kItems / 4; step != 0; step /= 2) {
      const unsigned at = (ITEM + 1) * 2 * step - 1;
      if (at + step < kItems) part[0][at + step] += part[0][at];
      meet();
    }
    if (i < count) sums[i] = part[0][ITEM];
    return;
  }
  if (version(5)) {  // backwards
    part[0][ITEM] = own;
    meet();
    float sum = 0;
    for (int k = ITEM; k >= 0; --k) sum += part[0][k];
    if (i < count) sums[i] = sum;
    return;
  }
  unsigned now = 0;
  part[0][ITEM] = own;
  meet();
  for (unsigned step = 1; step < (version(104) ? kItems / 2 : kItems); step *= 2) {
    const float before = ITEM >= step ? part[now][ITEM - step] : version(103) ? 1e-3f : 0.0f;
    part[1 - now][ITEM] = part[now][ITEM] + before;
    now = 1 - now;
    if (!(version(105) && step == 64)) meet();
  }
  if (i < count) sums[i] = version(106) ? part[now][ITEM] - own : part[now][ITEM];
}
