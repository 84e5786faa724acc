__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
    if (in[i] > 0.0f) i += 1;
  }
}
