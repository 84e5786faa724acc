// What the programs share: calls that must not fail, numbers that repeat, and the last line.
#pragma once

#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Without the line's number: a change of a kernel that moves lines leaves the host's code as it is.
#define CHECK(call)                                                                                 \
  do {                                                                                              \
    const hipError_t status_ = (call);                                                              \
    if (status_ != hipSuccess) {                                                                    \
      std::fprintf(stderr, "%s: %s: %s\n", __FILE__, #call, hipGetErrorString(status_));             \
      std::exit(70);                                                                                \
    }                                                                                               \
  } while (false)

// The first argument, or `otherwise`.
inline unsigned size_argument(int count, char** words, unsigned otherwise) {
  return count > 1 ? static_cast<unsigned>(std::strtoul(words[1], nullptr, 10)) : otherwise;
}

// Between -1 and 1, the same in each run.
inline std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> out(count);
  for (float& value : out) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(seed) >> 8) / 8388608.0F;
  }
  return out;
}

template <typename T>
T* on_device(const std::vector<T>& values) {
  T* place = nullptr;
  CHECK(hipMalloc(&place, values.size() * sizeof(T)));
  CHECK(hipMemcpy(place, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return place;
}

template <typename T>
std::vector<T> on_host(const T* place, size_t count) {
  std::vector<T> values(count);
  CHECK(hipMemcpy(values.data(), place, count * sizeof(T), hipMemcpyDeviceToHost));
  return values;
}

// Prints how many values are wrong, NaNs included; 0 when none is, else 1.
inline int report(const char* program, const std::vector<float>& found, const std::vector<double>& expected, double tolerance) {
  size_t wrong = 0;
  for (size_t i = 0; i < found.size(); ++i) wrong += !(std::fabs(found[i] - expected[i]) <= tolerance);
  std::printf("%s wrong %zu of %zu\n", program, wrong, found.size());
  return wrong == 0 && found.size() == expected.size() ? 0 : 1;
}
