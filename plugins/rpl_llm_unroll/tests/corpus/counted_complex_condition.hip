__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < n && in[i] > 0.0f; ++i) {  // expect: refused counted: does not compare i
    out[i] = in[i];
  }
}
