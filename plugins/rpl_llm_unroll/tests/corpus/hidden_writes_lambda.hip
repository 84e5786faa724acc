__global__ void kernel(float* out, const float* in, int n) {
  auto shrink = [&] { n -= 1; };
  for (int i = 0; i < n; ++i) {  // expect: refused hidden-writes: a lambda may change n
    shrink();
    out[i] = in[i];
  }
}
