__global__ void kernel(float* out, const float* in, int n) {
  out[0] = 1.0f; \
  for (int i = 0; i < 16; ++i) {  // expect: refused continuation: ends in a backslash
    out[i] = in[i];
  }
}
