#include "kernels.h"
KERNEL rows(const int* begin, const int* column, const float* value, const float* x, float* y, int n, float beta) {
  const int row = I;
  if (row >= n) return;
  float sum = 0.0f;
  for (int k = begin[row]; k < begin[row + 1]; ++k) sum += value[k] * x[column[k]];
  y[row] = beta == 0.0f ? sum : sum + beta * y[row];
}
