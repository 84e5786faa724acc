__global__ void aliased(float* out, const float* in, int n) {
  int* alias = &n;
  for (int i = 0; i < n; ++i) {  // expect: allowed 2 4 8
    out[i] = in[i];
    *alias -= 1;
  }
}
