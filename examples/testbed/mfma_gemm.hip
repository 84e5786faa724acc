// C = A * B with half precision factors on the matrix cores: a wave for each 16 x 16 tile of C. Argument: rows and
// columns, by 16.
#include "check.h"

constexpr unsigned kTile = 16;
using Halves = _Float16 __attribute__((ext_vector_type(4)));
using Floats = float __attribute__((ext_vector_type(4)));

// v_mfma_f32_16x16x16_f16: lane l holds A[l % 16][4 * (l / 16) ...], B[4 * (l / 16) ...][l % 16] and
// C[4 * (l / 16) ...][l % 16] (CDNA3 instruction set, section 7).
__global__ void gemm_mfma(const _Float16* a, const _Float16* b, float* c, unsigned n) {
  const unsigned column = threadIdx.x % kTile, part = threadIdx.x / kTile * 4;
  const unsigned row = blockIdx.y * kTile, first = blockIdx.x * kTile;
  Floats sum = {0, 0, 0, 0};
  for (unsigned k = 0; k < n; k += kTile) {
    Halves left, right;
    for (unsigned i = 0; i < 4; ++i) {
      left[i] = a[(row + column) * n + k + part + i];
      right[i] = b[(k + part + i) * n + first + column];
    }
#if defined(__gfx942__) || defined(__gfx950__)
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, sum, 0, 0, 0);
#endif
  }
  for (unsigned i = 0; i < 4; ++i) c[(row + part + i) * n + first + column] = sum[i];
}

int main(int count, char** words) {
  const unsigned n = size_argument(count, words, 96) / kTile * kTile;
  const size_t size = size_t{n} * n;
  const std::vector<float> left = numbers(size, 4), right = numbers(size, 5);
  const std::vector<_Float16> a(left.begin(), left.end()), b(right.begin(), right.end());
  std::vector<double> expected(size);
  for (unsigned i = 0; i < n; ++i)
    for (unsigned k = 0; k < n; ++k)
      for (unsigned j = 0; j < n; ++j)
        expected[i * n + j] += static_cast<double>(static_cast<float>(a[i * n + k])) * static_cast<float>(b[k * n + j]);
  float* c = on_device(std::vector<float>(size));
  gemm_mfma<<<dim3(n / kTile, n / kTile), 64>>>(on_device(a), on_device(b), c, n);
  return report("gemm_mfma", on_host(c, size), expected, 1e-6 * n);
}
