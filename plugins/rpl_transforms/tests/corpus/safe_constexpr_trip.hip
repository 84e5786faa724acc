constexpr int kTaps = 7;
__global__ void taps(float* out, const float* in) {
  const int last = kTaps - 1;
  float sum = 0.0f;
  for (int i = 0; i <= last; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
