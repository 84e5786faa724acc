__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) {  // expect: allowed 2 4 8
    out[i] = __shfl_xor(n, i);
  }
}
