__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused counted: i, which controls the loop
    int* p = &i;
    *p += 1;
    out[*p] = in[*p];
  }
}
