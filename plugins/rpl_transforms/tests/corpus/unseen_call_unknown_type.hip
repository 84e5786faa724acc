#include "elsewhere.inc"
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    Mystery mystery;
    out[i] = in[i];
  }
}
