__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
#ifdef EXTRA
    out[i] += 1.0f;
#endif
    out[i] = in[i];
  }
}
