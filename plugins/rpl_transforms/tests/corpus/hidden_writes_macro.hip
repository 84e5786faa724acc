#define SKIP(x) x += 1
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    SKIP(i);
    out[i] = in[i];
  }
}
