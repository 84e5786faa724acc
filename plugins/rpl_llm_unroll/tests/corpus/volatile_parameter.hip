__global__ void kernel(float* out, volatile const float* flags) {
  for (int i = 0; i < 16; ++i) {  // expect: refused volatile: flags is volatile
    out[i] = flags[i];
  }
}
