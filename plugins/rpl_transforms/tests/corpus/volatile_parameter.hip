__global__ void kernel(float* out, volatile const float* flags) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = flags[i];
  }
}
