typedef volatile float Flag;
__global__ void kernel(float* out, Flag* flags) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = flags[i];
  }
}
