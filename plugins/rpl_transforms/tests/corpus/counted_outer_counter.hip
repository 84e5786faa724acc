__global__ void kernel(float* out, const float* in, int n) {
  int k = 0;
  for (; k < n; ++k) {  // expect: allowed 2 4 8
    out[k] = in[k];
  }
}
