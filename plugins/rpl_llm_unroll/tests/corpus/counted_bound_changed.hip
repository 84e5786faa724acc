__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) {  // expect: refused counted: n, which controls the loop
    out[i] = in[i];
    n -= 1;
  }
}
