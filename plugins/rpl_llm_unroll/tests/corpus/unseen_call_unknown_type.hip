#include "elsewhere.inc"
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused unseen-call: Mystery is not defined in this file
    Mystery mystery;
    out[i] = in[i];
  }
}
