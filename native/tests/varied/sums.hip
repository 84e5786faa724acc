#include "kernels.h"
KERNEL sums(const float* in, float* out, int n, int skip) {
  SHARED float part[256];
  float sum = 0.0f;
  for (int i = I; i < n; i += ALL) {
    if (i >= skip) sum += in[i];
  }
  part[T] = sum;
  SYNC();
  for (int step = 128; step > 0; step /= 2) {
    if (T < step) part[T] += part[T + step];
    SYNC();
  }
  if (T == 0) out[B] = part[0];
}
