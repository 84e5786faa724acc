__global__ void kernel(float* out, const float* in, int n) {
  #pragma nounroll
  // stays rolled: measured
  for (int i = 0; i < 16; ++i) {  // expect: refused own-pragma
    out[i] = in[i];
  }
}
