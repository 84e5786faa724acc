// Smooths a signal again and again: the example for `rpl optimize`.
//
//   hipcc -O3 -g --offload-arch=gfx942 smooth.hip -o smooth
//   ./smooth SIZE ITERATIONS [FILE]
//
// Writes the result to FILE (smooth.out) as 32-bit floats and prints a checksum of it.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                              \
  do {                                                                           \
    hipError_t error = (call);                                                   \
    if (error != hipSuccess) {                                                   \
      std::fprintf(stderr, "smooth: %s: %s\n", #call, hipGetErrorString(error)); \
      std::exit(1);                                                              \
    }                                                                            \
  } while (0)

constexpr int kBlock = 256;

// Most of the time goes here: one product and one sum per weight, one load each.
__global__ __launch_bounds__(256) void smooth(const float* in, const float* weights, float* out, int n, int taps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < taps; ++k) {
      sum += weights[k] * in[i + k];
    }
    out[i] = sum;
  }
}

__global__ __launch_bounds__(256) void fade(float* data, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    data[i] *= factor;
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s SIZE ITERATIONS [FILE]\n", argv[0]);
    return 64;
  }
  constexpr int taps = 64;
  const int n = std::atoi(argv[1]), iterations = std::atoi(argv[2]);
  const char* file = argc > 3 ? argv[3] : "smooth.out";
  if (n < 1 || iterations < 1) {
    std::fprintf(stderr, "smooth: SIZE and ITERATIONS must be positive\n");
    return 64;
  }

  // The signal is longer than the result by the filter, so no work-item reads beyond its end.
  const size_t signal_bytes = (n + taps) * sizeof(float), filter_bytes = taps * sizeof(float);
  const size_t result_bytes = n * sizeof(float);
  float* signal = static_cast<float*>(std::malloc(signal_bytes));
  float weights[taps];
  if (!signal) {
    std::fprintf(stderr, "smooth: no memory for %d values\n", n);
    return 1;
  }
  for (int i = 0; i < n + taps; ++i) signal[i] = float((i * 37) % 101) / 101.0f;
  for (int k = 0; k < taps; ++k) weights[k] = 1.0f / float(taps + (k % 3));

  float *in, *filter, *out;
  CHECK(hipMalloc(&in, signal_bytes));
  CHECK(hipMalloc(&filter, filter_bytes));
  CHECK(hipMalloc(&out, result_bytes));
  CHECK(hipMemcpy(in, signal, signal_bytes, hipMemcpyHostToDevice));
  CHECK(hipMemcpy(filter, weights, filter_bytes, hipMemcpyHostToDevice));

  const int blocks = (n + kBlock - 1) / kBlock;
  for (int step = 0; step < iterations; ++step) {
    smooth<<<blocks, kBlock>>>(in, filter, out, n, taps);
    fade<<<blocks, kBlock>>>(out, n, 0.99f);
    CHECK(hipGetLastError());
    CHECK(hipMemcpy(in, out, result_bytes, hipMemcpyDeviceToDevice));
  }
  CHECK(hipDeviceSynchronize());
  float* result = signal;
  CHECK(hipMemcpy(result, out, result_bytes, hipMemcpyDeviceToHost));

  double checksum = 0.0;
  for (int i = 0; i < n; ++i) checksum += result[i];
  std::FILE* written = std::fopen(file, "wb");
  const bool complete = written && std::fwrite(result, sizeof(float), n, written) == size_t(n);
  if (!complete || std::fclose(written) != 0) {
    std::perror(file);
    return 1;
  }
  std::printf("checksum %.6f\n", checksum);
  CHECK(hipFree(in));
  CHECK(hipFree(filter));
  CHECK(hipFree(out));
  std::free(signal);
  return 0;
}
