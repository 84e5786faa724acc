__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
    asm volatile("s_nop 0");
  }
}
