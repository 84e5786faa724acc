__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused directives: a preprocessor directive inside
#ifdef EXTRA
    out[i] += 1.0f;
#endif
    out[i] = in[i];
  }
}
