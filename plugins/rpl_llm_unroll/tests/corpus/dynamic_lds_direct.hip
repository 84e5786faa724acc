__global__ void kernel(float* out, const float* in, int n) {
  extern __shared__ float cache[];
  for (int i = 0; i < 16; ++i) {  // expect: refused dynamic-lds: cache is dynamic shared memory
    out[i] = cache[i];
  }
}
