#define STOP_IF(condition) if (condition) break
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    STOP_IF(in[i] < 0.0f);
    out[i] = in[i];
  }
}
