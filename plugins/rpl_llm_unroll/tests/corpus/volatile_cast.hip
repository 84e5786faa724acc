__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused volatile: volatile access
    out[i] = *(volatile const float*)(in + i);
  }
}
