__global__ void kernel(float* out, const float* in, int n) {
  #pragma unroll 2
#if 1
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
  }
#endif
}
