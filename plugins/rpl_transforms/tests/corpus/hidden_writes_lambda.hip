__global__ void kernel(float* out, const float* in, int n) {
  auto shrink = [&] { n -= 1; };
  for (int i = 0; i < n; ++i) {  // expect: allowed 2 4 8
    shrink();
    out[i] = in[i];
  }
}
