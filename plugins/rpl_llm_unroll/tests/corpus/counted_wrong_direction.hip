__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 16; i > 0; ++i) {  // expect: refused counted: does not move towards
    out[i] = in[i];
  }
}
