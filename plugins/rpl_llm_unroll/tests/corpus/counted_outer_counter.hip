__global__ void kernel(float* out, const float* in, int n) {
  int k = 0;
  for (; k < n; ++k) {  // expect: refused counted: declares no counter
    out[k] = in[k];
  }
}
