#include "kernels.h"
KERNEL saxpy(const float* x, float* y, float a, long n, unsigned stride) {
  for (long i = I; i < n; i += ALL) {
    const float v = a * x[i * stride] + y[i];
    y[i] = v;
  }
}
