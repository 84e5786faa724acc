__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused fence
    out[i] = in[i];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  }
}
