__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < warpSize; ++i) {  // expect: refused wave-size: warpSize makes the loop depend
    out[i] = in[i];
  }
}
