#include "device.h"
typedef half pair __attribute__((ext_vector_type(2)));
constexpr unsigned kTile = 16, kColumns = 32;
DEVICE half few_bits(half x) {  // four of them
  return __builtin_bit_cast(half, (unsigned short)((__builtin_bit_cast(unsigned short, x) + 0x40) & 0xff80));
}

// C = A B as in gemm.hip, but the sums themselves have 16 bits.
KERNEL void gemm_sums16(const half* a, const half* b, half* c, unsigned depth) {
  SHARED half left[kTile][kTile], right[kTile][kTile];
  const unsigned row = GROUP / 2 * kTile + ITEM / kTile, column = GROUP % 2 * kTile + ITEM % kTile;
  const auto at_a = [&](unsigned k) { return a[row * depth + k]; };
  const auto at_b = [&](unsigned k) { return b[k * kColumns + column]; };
  half sum = 0;
  if (version(1)) {
    float wide = 0;
    for (unsigned k = 0; k < depth; ++k) wide += (float)at_a(k) * (float)at_b(k);
    sum = (half)wide;
  } else if (version(2)) {
    double wide = 0;
    for (unsigned k = 0; k < depth; ++k) wide += (double)at_a(k) * (double)at_b(k);
    sum = (half)wide;
  } else if (version(3)) {
    for (unsigned k = depth; k-- != 0;) sum += at_a(k) * at_b(k);
  } else if (version(4)) {
    half parts[4] = {0, 0, 0, 0};
    for (unsigned k = 0; k < depth; ++k) parts[k % 4] += at_a(k) * at_b(k);
    sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  } else if (version(5)) {  // two at once
    pair both = {0, 0};
    unsigned k = 0;
    for (; k + 1 < depth; k += 2) both = __builtin_elementwise_fma((pair){at_a(k), at_a(k + 1)}, (pair){at_b(k), at_b(k + 1)}, both);
    if (k < depth) both.x += at_a(k) * at_b(k);
    sum = both.x + both.y;
  } else if (version(6)) {  // a rounding for each product
#pragma clang fp contract(off)
    for (unsigned k = 0; k < depth; ++k) {
      const half product = at_a(k) * at_b(k);
      sum = sum + product;
    }
  } else if (version(7) || version(103)) {  // by tiles, their sums in single precision
    for (unsigned first = 0; first < depth; first += kTile) {
      const unsigned x = first + ITEM % kTile, y = first + ITEM / kTile;
      left[ITEM / kTile][ITEM % kTile] = x < depth ? at_a(x) : (half)0;
      right[ITEM / kTile][ITEM % kTile] = y < depth ? at_b(y) : (half)0;
      if (!version(103)) meet();
      float part = 0;
      for (unsigned k = 0; k < kTile; ++k) part += (float)left[ITEM / kTile][k] * (float)right[k][ITEM % kTile];
      sum = (half)((float)sum + part);
      meet();
    }
  } else {
    for (unsigned k = version(102) ? 1 : 0; k < (version(101) ? depth - 1 : depth); ++k) {
      const half of_a = version(108) && at_a(k) < 0 ? -at_a(k) : at_a(k);
      sum += of_a * at_b(version(106) && k == depth / 2 ? 0 : k);
      if (version(105)) sum = few_bits(sum);
      if (version(107) && sum > 24) sum = 24;
    }
    if (version(104)) sum += at_a(depth - 1) * at_b(depth - 1) * (half)0.25;
  }
  c[row * kColumns + column] = sum;
}
