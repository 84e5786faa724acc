#include "kernels.h"
KERNEL product(const float* a, const float* b, float* c, int rows, int columns, int depth, int accumulate) {
  SHARED float as[8][8];
  SHARED float bs[8][8];
  const int x = T % 8, y = T / 8, tiles = (columns + 7) / 8;
  const int column = B % tiles * 8 + x, row = B / tiles * 8 + y;
  float sum = 0.0f;
  for (int k = 0; k < depth; k += 8) {
    as[y][x] = row < rows && k + x < depth ? a[row * depth + k + x] : 0.0f;
    bs[y][x] = column < columns && k + y < depth ? b[(k + y) * columns + column] : 0.0f;
    SYNC();
    for (int j = 0; j < 8; ++j) sum += as[y][j] * bs[j][x];
    SYNC();
  }
  if (row < rows && column < columns) {
    if (accumulate) sum += c[row * columns + column];
    c[row * columns + column] = sum;
  }
}
