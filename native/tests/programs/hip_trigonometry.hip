// sin, cos and tan of doubles over all magnitudes: how far the kernel's are from the host's, in units of the last place.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

__global__ void functions(const double* x, double* results, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  results[i] = sin(x[i]);
  results[count + i] = cos(x[i]);
  results[2 * count + i] = tan(x[i]);
}

static double apart(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e300;
  int64_t p = 0, q = 0;
  std::memcpy(&p, &a, sizeof(p));
  std::memcpy(&q, &b, sizeof(q));
  const auto line = [](int64_t bits) { return bits < 0 ? INT64_MIN - bits : bits; };
  const int64_t x = line(p), y = line(q);
  return x > y ? static_cast<double>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)) : static_cast<double>(static_cast<uint64_t>(y) - static_cast<uint64_t>(x));
}

int main() {
  std::vector<double> x = {0, -0.0, 1, 1e5, 1e22, 1e300, -1e300, 5e-324, 0x1p945, 0x1.fffffffffffffp944, HUGE_VAL};
  std::mt19937_64 drawn(1);
  while (x.size() < 4096) {  // of every exponent, and multiples of pi/2
    const double mantissa = 1 + static_cast<double>(drawn() >> 12) * 0x1p-52;
    x.push_back(std::ldexp(drawn() % 2 ? mantissa : -mantissa, static_cast<int>(drawn() % 2046) - 1022));
    x.push_back(static_cast<double>(drawn() % 100000) * 1.5707963267948966);
  }
  const int count = static_cast<int>(x.size());
  double *from = nullptr, *to = nullptr;
  if (hipMalloc(&from, count * sizeof(double)) != hipSuccess || hipMalloc(&to, 3 * count * sizeof(double)) != hipSuccess) return 70;
  if (hipMemcpy(from, x.data(), count * sizeof(double), hipMemcpyHostToDevice) != hipSuccess) return 70;
  functions<<<(count + 255) / 256, 256>>>(from, to, count);
  std::vector<double> found(3 * x.size());
  if (hipMemcpy(found.data(), to, found.size() * sizeof(double), hipMemcpyDeviceToHost) != hipSuccess) return 70;
  double most[3] = {};
  for (size_t i = 0; i < x.size(); ++i) {
    const double known[] = {std::sin(x[i]), std::cos(x[i]), std::tan(x[i])};
    for (int f = 0; f < 3; ++f) most[f] = std::fmax(most[f], apart(found[f * x.size() + i], known[f]));
  }
  std::printf("%g %g %g\n", most[0], most[1], most[2]);
  return 0;
}
