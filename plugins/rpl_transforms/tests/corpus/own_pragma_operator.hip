__global__ void kernel(float* out, const float* in, int n) {
  _Pragma("unroll 2")
  for (int i = 0; i < 16; ++i) {  // expect: refused own-pragma
    out[i] = in[i];
  }
}
