#include "device.h"
#ifdef HALVES
typedef half number;
#define NAME gemm_f16
#else
typedef float number;
#define NAME gemm_f32
#endif
constexpr unsigned kTile = 16;

// C = A B with 32 rows, 32 columns and 70 products in each sum. A workgroup has a tile of 16 by 16.
KERNEL void NAME(const number* a, const number* b, number* c, unsigned depth) {
  SHARED number left[kTile][kTile], right[kTile][kTile];
  const unsigned row = GROUP / 2 * kTile + ITEM / kTile, column = GROUP % 2 * kTile + ITEM % kTile;
  constexpr unsigned kColumns = 32;
  const auto product = [&](unsigned k) { return (float)a[row * depth + k] * (float)b[k * kColumns + column]; };
  float sum = 0;
  if (version(1) || (VERSION >= 103 && VERSION <= 105)) {
    for (unsigned first = 0; first < (version(105) ? depth / kTile * kTile : depth); first += kTile) {
      const unsigned x = first + ITEM % kTile, y = first + ITEM / kTile;
      left[ITEM / kTile][ITEM % kTile] = x < depth ? a[row * depth + x] : (number)0;
      right[ITEM / kTile][ITEM % kTile] = y < depth ? b[y * kColumns + column] : (number)0;
      if (!version(103)) meet();
      float part = 0;
      for (unsigned k = 0; k < kTile; ++k) part += (float)left[ITEM / kTile][k] * (float)right[k][ITEM % kTile];
      sum += part;
      if (!version(104)) meet();
    }
  } else if (version(2)) {
    double exact = 0;
    for (unsigned k = 0; k < depth; ++k) exact += (double)a[row * depth + k] * (double)b[k * kColumns + column];
    sum = (float)exact;
  } else if (version(3)) {
    for (unsigned k = depth; k-- != 0;) sum += product(k);
  } else if (version(4)) {
    float parts[4] = {0, 0, 0, 0};
    for (unsigned k = 0; k < depth; ++k) parts[k % 4] += product(k);
    sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  } else if (version(5)) {
    float other = 0;
    for (unsigned k = 0; k < depth / 2; ++k) sum = __builtin_fmaf((float)a[row * depth + k], (float)b[k * kColumns + column], sum);
    for (unsigned k = depth / 2; k < depth; ++k) other += product(k);
    sum += other;
  } else if (version(106)) {
    half low = 0;
    for (unsigned k = 0; k < depth; ++k) low += (half)a[row * depth + k] * (half)b[k * kColumns + column];
    sum = (float)low;
  } else if (version(107)) {  // four partial sums, kept as halves
    half parts[4] = {0, 0, 0, 0};
    for (unsigned k = 0; k < depth; ++k) parts[k % 4] = (half)((float)parts[k % 4] + product(k));
    sum = ((float)parts[0] + (float)parts[1]) + ((float)parts[2] + (float)parts[3]);
  } else {
    for (unsigned k = version(102) ? 1 : 0; k < (version(101) ? depth - 1 : depth); ++k) sum += product(k);
    if (version(108)) sum += product(depth - 1) * 1e-3f;
  }
  c[row * kColumns + column] = (number)sum;
}
