#include "kernels.h"
KERNEL turned(const int* in, int* out, int width, int height) {
  SHARED int tile[16][16];
  const int x = T % 16, y = T / 16, across = (width + 15) / 16;
  const int column = B % across * 16 + x, row = B / across * 16 + y;
  if (column < width && row < height) tile[y][x] = in[row * width + column];
  SYNC();
  const int to_x = B / across * 16 + x, to_y = B % across * 16 + y;
  if (to_x < height && to_y < width) out[to_y * height + to_x] = tile[x][y];
}
