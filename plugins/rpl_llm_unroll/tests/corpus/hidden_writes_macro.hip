#define SKIP(x) x += 1
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: refused hidden-writes: macro SKIP may change i
    SKIP(i);
    out[i] = in[i];
  }
}
