constexpr int kTaps = 7;
__global__ void taps(float* out, const float* in) {
  const int last = kTaps - 1;
  float sum = 0.0f;
  for (int i = 0; i <= last; ++i) sum += in[i];  // expect: allowed pragma 2 4 7; explicit 2 4 7; refused trip-count: 7 iterations are fewer than 8
  out[threadIdx.x] = sum;
}
