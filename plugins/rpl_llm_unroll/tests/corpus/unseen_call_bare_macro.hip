#include "step.inc"
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused unseen-call: STEP stands alone
    out[i] = in[i];
    STEP;
  }
}
