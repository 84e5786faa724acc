// A candidate for `smooth` of smooth.hip: eight taps for each turn of the loop. `rpl demo` compares it.
#include <hip/hip_runtime.h>

__global__ __launch_bounds__(256) void smooth(const float* in, const float* weights, float* out, int n, int taps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    int k = 0;
    for (; k + 8 <= taps; k += 8) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum = fmaf(weights[k + j], in[i + k + j], sum);
      }
    }
    for (; k < taps; ++k) {
      sum = fmaf(weights[k], in[i + k], sum);
    }
    out[i] = sum;
  }
}
