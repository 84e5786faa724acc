#include "kernels.h"
KERNEL blur(const float* in, float* out, int n, float middle) {
  SHARED float tile[256 + 2];
  const int i = I;
  tile[T + 1] = i < n ? in[i] : 0.0f;
  if (T == 0) tile[0] = i > 0 && i - 1 < n ? in[i - 1] : 0.0f;
  if (T == D - 1) tile[T + 2] = i + 1 < n ? in[i + 1] : 0.0f;
  SYNC();
  const float left = tile[T], here = tile[T + 1], right = tile[T + 2];
  if (i < n) out[i] = left + middle * here + right;
}
