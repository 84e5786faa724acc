__device__ void nop() { asm("s_nop 0"); }
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused inline-asm: nop has inline assembly
    out[i] = in[i];
    nop();
  }
}
