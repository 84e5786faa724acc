__global__ void kernel(float* out, const float* in, int n) {
  do {  // expect: refused counted: a do-while loop
    out[n] = in[n];
  } while (--n > 0);
}
