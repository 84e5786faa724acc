__global__ void kernel(float* out, const float* in, int n) {
  [[clang::code_align(64)]] for (int i = 0; i < 16; ++i) {  // expect: refused own-pragma
    out[i] = in[i];
  }
}
