__device__ void advance(int& i) { ++i; }
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    advance(i);
    out[i] = in[i];
  }
}
