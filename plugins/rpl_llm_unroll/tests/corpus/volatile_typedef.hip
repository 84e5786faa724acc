typedef volatile float Flag;
__global__ void kernel(float* out, Flag* flags) {
  for (int i = 0; i < 16; ++i) {  // expect: refused volatile: flags is volatile
    out[i] = flags[i];
  }
}
