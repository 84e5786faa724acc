#include "kernels.h"
KERNEL scale(const float* in, float* out, float factor, int n, int mode) {
  const int i = I;
  if (i < n) {
    float v = in[i] * factor;
    if (mode == 1) v = v + 1.0f;
    if (mode == 2 && v < 0.0f) v = 0.0f;
    out[i] = v;
  }
}
