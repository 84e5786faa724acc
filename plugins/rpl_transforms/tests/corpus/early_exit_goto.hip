__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    if (in[i] < 0.0f) goto done;
    out[i] = in[i];
  }
done:
  out[0] = 1.0f;
}
