__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused static-storage: a __shared__ variable
    __shared__ float cell;
    cell = in[i];
    out[i] = cell;
  }
}
