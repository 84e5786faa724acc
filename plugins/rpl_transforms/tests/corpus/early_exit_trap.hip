__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    if (in[i] < 0.0f) __builtin_trap();
    out[i] = in[i];
  }
}
