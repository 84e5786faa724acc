__global__ void kernel(float* out, const float* in, int n) {
  while (n-- > 0) {  // expect: refused counted: a while loop has no counter
    out[n] = in[n];
  }
}
