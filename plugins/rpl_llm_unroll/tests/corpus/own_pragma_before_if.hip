__global__ void kernel(float* out, const float* in, int n) {
  #pragma unroll 2
#if 1
  for (int i = 0; i < 16; ++i) {  // expect: refused own-pragma: already has '#pragma unroll 2'
    out[i] = in[i];
  }
#endif
}
