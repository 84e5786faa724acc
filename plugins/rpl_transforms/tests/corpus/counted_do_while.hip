__global__ void kernel(float* out, const float* in, int n) {
  do {  // expect: allowed 2 4 8
    out[n] = in[n];
  } while (--n > 0);
}
