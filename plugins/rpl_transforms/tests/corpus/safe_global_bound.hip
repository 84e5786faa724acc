__device__ int limit;
__device__ void lower() { limit -= 1; }
__global__ void global_bound(float* out, const float* in) {
  for (int i = 0; i < limit; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
    lower();
  }
}
