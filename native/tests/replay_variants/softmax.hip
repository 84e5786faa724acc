#include "device.h"

// Each of 4 rows by one workgroup.
KERNEL void softmax(const float* in, float* out, unsigned columns) {
  SHARED float part[kItems];
  SHARED float shared_most, shared_sum;
  const float* row = in + GROUP * columns;
  float* to = out + GROUP * columns;
  const unsigned counted = version(101) ? columns - 1 : version(102) ? columns / 64 * 64 : columns;
  if (version(1)) {  // one pass
    float top = -__builtin_inff(), sum = 0;
    for (unsigned k = 0; k < columns; ++k) {
      const float next = most(top, row[k]);
      sum = sum * power2((top - next) * 1.44269504f) + power2((row[k] - next) * 1.44269504f);
      top = next;
    }
    for (unsigned k = ITEM; k < columns; k += kItems) to[k] = power2((row[k] - top) * 1.44269504f) / sum;
    return;
  }
  float top = version(103) ? 0.0f : -__builtin_inff();
  for (unsigned k = ITEM; k < columns; k += kItems) top = most(top, row[k]);
  part[ITEM] = top;
  meet();
  if (version(2)) {  // by waves
    float found = part[ITEM % 64];
    for (unsigned k = 1; k < 4; ++k) found = most(found, part[ITEM % 64 + 64 * k]);
    for (unsigned step = 32; step != 0; step /= 2) found = most(found, of_lane(found, lane() ^ step));
    top = found;
  } else {
    for (unsigned step = kItems / 2; step != 0; step /= 2) {
      if (ITEM < step) part[ITEM] = most(part[ITEM], part[ITEM + step]);
      meet();
    }
    top = part[0];
  }
  if (version(104)) top = 0;
  if (!version(105)) meet();
  const auto term = [&](unsigned k) {
    if (version(3)) return exponential(row[k] - top);
    if (version(4)) return power2(__builtin_fmaf(row[k], 1.44269504f, -top * 1.44269504f));
    return power2((row[k] - top) * 1.44269504f);
  };
  float sum = version(106) ? 1e-4f : 0.0f;
  if (version(5)) {
    double exact = 0;
    for (unsigned k = 0; k < columns; ++k) exact += term(k);
    sum = (float)exact;
  } else if (version(107)) {
    half low = 0;
    for (unsigned k = 0; k < columns; ++k) low += (half)term(k);
    sum = (float)low;
  } else if (version(6)) {
    for (unsigned k = columns; k-- != 0;) sum += term(k);
  } else {
    for (unsigned k = ITEM; k < counted; k += kItems) sum += term(k);
    part[ITEM] = sum - (version(106) && ITEM != 0 ? 1e-4f : 0.0f);
    meet();
    for (unsigned step = kItems / 2; step != 0; step /= 2) {
      if (ITEM < step) part[ITEM] += part[ITEM + step];
      if (!(version(108) && step == 128)) meet();
    }
    sum = part[0];
  }
  const float inverse = 1.0f / sum;
  for (unsigned k = ITEM; k < columns; k += kItems) to[k] = version(2) || version(4) ? term(k) * inverse : term(k) / sum;
}
