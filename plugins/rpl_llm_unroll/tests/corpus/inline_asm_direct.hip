__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused inline-asm: inline assembly
    out[i] = in[i];
    asm volatile("s_nop 0");
  }
}
