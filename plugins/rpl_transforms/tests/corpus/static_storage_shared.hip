__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    __shared__ float cell;
    cell = in[i];
    out[i] = cell;
  }
}
