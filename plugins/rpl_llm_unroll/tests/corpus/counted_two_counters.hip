__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0, j = 0; i < 16; ++i) {  // expect: refused counted: exactly one counter
    out[i] = in[j];
  }
}
