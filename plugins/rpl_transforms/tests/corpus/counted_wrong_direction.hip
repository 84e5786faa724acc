__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 16; i > 0; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
  }
}
