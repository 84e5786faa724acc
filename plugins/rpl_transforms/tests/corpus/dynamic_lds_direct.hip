__global__ void kernel(float* out, const float* in, int n) {
  extern __shared__ float cache[];
  for (int i = 0; i < 16; ++i) {  // expect: refused dynamic-lds
    out[i] = cache[i];
  }
}
