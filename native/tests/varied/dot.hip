#include "kernels.h"
KERNEL dot(const float* a, const float* b, float* result, int n) {
  SHARED float part[4];
  float sum = 0.0f;
  for (int i = I; i < n; i += ALL) sum += a[i] * b[i];
  for (int step = 32; step > 0; step /= 2) sum += __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(((T & 63) ^ step) * 4, __builtin_bit_cast(int, sum)));
  if ((T & 63) == 0) part[T / 64] = sum;
  SYNC();
  if (T == 0) {
    float all = 0.0f;
    for (int k = 0; k < (D + 63) / 64; ++k) all += part[k];
    ADD(result, all);
  }
}
