__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused atomic
    __hip_atomic_store(out, in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}
