// Five-point stencil with tiles and their edges in LDS, back and forth between two grids. Arguments: edge, steps.
#include "check.h"

constexpr unsigned kTile = 16;

__global__ void stencil(const float* from, float* to, unsigned n) {
  __shared__ float tile[kTile + 2][kTile + 2];
  const int x = static_cast<int>(blockIdx.x * kTile + threadIdx.x), y = static_cast<int>(blockIdx.y * kTile + threadIdx.y);
  const int edge = static_cast<int>(n);
  const auto at = [&](int column, int row) {
    return column < 0 || row < 0 || column >= edge || row >= edge ? 0.0F : from[row * edge + column];
  };
  const unsigned i = threadIdx.x + 1, j = threadIdx.y + 1;
  tile[j][i] = at(x, y);
  if (i == 1) tile[j][0] = at(x - 1, y);
  if (i == kTile) tile[j][kTile + 1] = at(x + 1, y);
  if (j == 1) tile[0][i] = at(x, y - 1);
  if (j == kTile) tile[kTile + 1][i] = at(x, y + 1);
  __syncthreads();
  if (x < edge && y < edge)
    to[y * edge + x] = 0.2F * (tile[j][i] + tile[j][i - 1] + tile[j][i + 1] + tile[j - 1][i] + tile[j + 1][i]);
}

int main(int count, char** words) {
  const unsigned n = size_argument(count, words, 100);
  const unsigned steps = count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 4;
  const std::vector<float> given = numbers(size_t{n} * n, 6);
  std::vector<double> expected(given.begin(), given.end()), before;
  for (unsigned step = 0; step < steps; ++step) {
    before = expected;
    for (unsigned y = 0; y < n; ++y)
      for (unsigned x = 0; x < n; ++x) {
        const size_t at = size_t{y} * n + x;
        expected[at] = 0.2 * (before[at] + (x > 0 ? before[at - 1] : 0) + (x + 1 < n ? before[at + 1] : 0) +
                              (y > 0 ? before[at - n] : 0) + (y + 1 < n ? before[at + n] : 0));
      }
  }
  float *from = on_device(given), *to = on_device(std::vector<float>(given.size()));
  const dim3 grid((n + kTile - 1) / kTile, (n + kTile - 1) / kTile), block(kTile, kTile);
  for (unsigned step = 0; step < steps; ++step) {
    stencil<<<grid, block>>>(from, to, n);
    std::swap(from, to);
  }
  return report("stencil", on_host(from, expected.size()), expected, 1e-5);
}
