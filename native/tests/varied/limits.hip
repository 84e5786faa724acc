#include "kernels.h"
KERNEL limits(const int* in, int* out, int n, int low, int high, unsigned flags) {
  const int i = I;
  if (i >= n) return;
  int v = in[i];
  if (flags & 4) v = -v;
  if (v < low) v = low;
  if (v > high) v = high;
  if (flags & 1) v = v * 2;
  out[i] = v;
}
