__global__ void aliased(float* out, const float* in, int n) {
  int* alias = &n;
  for (int i = 0; i < n; ++i) {  // expect: allowed pragma 2 4 8; refused explicit-form: not a plain local variable
    out[i] = in[i];
    *alias -= 1;
  }
}
