__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused early-exit: break may leave the loop
    out[i] = in[i];
    if (in[i] < 0.0f) break;
  }
}
