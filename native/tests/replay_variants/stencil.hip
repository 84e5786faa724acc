#include "device.h"

// Five points of a field of 48 by 48; outside it is 0. A workgroup has 16 by 16 of them.
KERNEL void stencil(const float* in, float* out, int size) {
  const int x = GROUP % 3 * 16 + ITEM % 16, y = GROUP / 3 * 16 + ITEM / 16;
  const auto at = [&](int u, int v) {
    if (version(101)) { u = u < 0 ? 0 : u; v = v < 0 ? 0 : v; }
    return u < 0 || v < 0 || u >= size || v >= size ? 0.0f : in[v * size + u];
  };
  const float middle = at(x, y), a = at(x - 1, y), b = at(x + (version(102) ? 2 : 1), y), c = at(x, y - 1), d = at(x, y + 1);
  float sum;
  if (version(1) || version(103) || version(104)) {
    SHARED float tile[18][18];
    for (unsigned k = ITEM; k < 18 * 18; k += kItems) tile[k / 18][k % 18] = at(GROUP % 3 * 16 + (int)(k % 18) - 1, GROUP / 3 * 16 + (int)(k / 18) - 1);
    if (!version(103)) meet();
    const unsigned u = ITEM % 16 + 1, v = ITEM / 16 + 1;
    const float below = version(104) && v == 16 ? 0.0f : tile[v + 1][u];
    sum = 0.3f * tile[v][u] + 0.2f * tile[v][u - 1] + 0.2f * tile[v][u + 1] + 0.15f * tile[v - 1][u] + 0.15f * below;
  } else if (version(2)) {
    sum = 0.3f * middle + 0.2f * (a + b) + 0.15f * (c + d);
  } else if (version(3)) {  // the same coefficients, summed in double precision
    sum = (float)((double)0.3f * middle + (double)0.2f * a + (double)0.2f * b + (double)0.15f * c + (double)0.15f * d);
  } else if (version(6)) {  // other coefficients: those of double precision
    sum = (float)(0.3 * (double)middle + 0.2 * (double)a + 0.2 * (double)b + 0.15 * (double)c + 0.15 * (double)d);
  } else if (version(4)) {
    sum = __builtin_fmaf(0.15f, d, __builtin_fmaf(0.15f, c, __builtin_fmaf(0.2f, b, __builtin_fmaf(0.2f, a, 0.3f * middle))));
  } else if (version(5)) {
    sum = 0.15f * d + (0.15f * c + (0.2f * b + (0.2f * a + 0.3f * middle)));
  } else if (version(105)) {
    sum = 0.2f * a + 0.2f * b + 0.15f * c + 0.15f * d;
  } else if (version(106)) {
    sum = (float)((half)0.3f * (half)middle + (half)0.2f * (half)(a + b) + (half)0.15f * (half)(c + d));
  } else {
    sum = 0.3f * middle + 0.2f * a + 0.2f * b + 0.15f * c + (version(107) ? 0.1501f : 0.15f) * d;
  }
  if (version(108) && y == size - 1) return;
  out[y * size + x] = sum;
}
