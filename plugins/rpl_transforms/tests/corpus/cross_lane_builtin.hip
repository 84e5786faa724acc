__global__ void kernel(float* out, const float* in, int n) {
  for (int i = threadIdx.x; i < n; ++i) {  // expect: allowed 2 4 8
    out[i] = __builtin_amdgcn_readfirstlane(i);
  }
}
