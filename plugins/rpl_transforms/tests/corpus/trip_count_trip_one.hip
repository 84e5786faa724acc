__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 1; ++i) {  // expect: refused trip-count
    out[i] = in[i];
  }
}
