struct Guard {
  __device__ ~Guard() { __syncthreads(); }
};
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused barrier
    Guard guard;
    out[i] = in[i];
  }
}
