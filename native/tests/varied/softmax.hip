#include "kernels.h"
KERNEL softmax(const float* in, float* out, int columns, float scale) {
  SHARED float part[128];
  const float* row = in + (long)B * columns;
  float top = -3.0e38f;
  for (int k = T; k < columns; k += 128) top = most(top, row[k] * scale);
  part[T] = top;
  SYNC();
  for (int step = 64; step > 0; step /= 2) {
    if (T < step) part[T] = most(part[T], part[T + step]);
    SYNC();
  }
  top = part[0];
  SYNC();
  float sum = 0.0f;
  for (int k = T; k < columns; k += 128) sum += __builtin_amdgcn_exp2f((row[k] * scale - top) * 1.442695f);
  part[T] = sum;
  SYNC();
  for (int step = 64; step > 0; step /= 2) {
    if (T < step) part[T] += part[T + step];
    SYNC();
  }
  sum = part[0];
  for (int k = T; k < columns; k += 128) out[(long)B * columns + k] = __builtin_amdgcn_exp2f((row[k] * scale - top) * 1.442695f) / sum;
}
