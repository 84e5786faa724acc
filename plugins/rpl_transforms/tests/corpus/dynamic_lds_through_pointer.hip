__global__ void kernel(float* out, const float* in, int n) {
  extern __shared__ float cache[];
  float* first = cache + n;
  float* second = first + 1;
  for (int i = 0; i < 16; ++i) {  // expect: refused dynamic-lds
    out[i] = second[i];
  }
}
