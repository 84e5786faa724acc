// A wrong candidate for `smooth` of smooth.hip: it leaves out the last taps. `rpl demo` shows that this is noticed.
#include <hip/hip_runtime.h>

__global__ __launch_bounds__(256) void smooth(const float* in, const float* weights, float* out, int n, int taps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k + 8 < taps; k += 8) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum = fmaf(weights[k + j], in[i + k + j], sum);
      }
    }
    out[i] = sum;
  }
}
