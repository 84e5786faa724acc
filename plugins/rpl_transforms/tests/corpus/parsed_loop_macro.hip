#define REPEAT(i, n) for (int i = 0; i < n; ++i)
__global__ void repeat(float* out, const float* in) {
  REPEAT(i, 4) { out[i] = 1.0f; }
  for (int i = 0; i < 16; ++i) out[i] += in[i];  // expect: allowed 2 4 8
}
