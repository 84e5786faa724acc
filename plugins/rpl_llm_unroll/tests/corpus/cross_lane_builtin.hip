__global__ void kernel(float* out, const float* in, int n) {
  for (int i = threadIdx.x; i < n; ++i) {  // expect: refused cross-lane: __builtin_amdgcn_readfirstlane
    out[i] = __builtin_amdgcn_readfirstlane(i);
  }
}
