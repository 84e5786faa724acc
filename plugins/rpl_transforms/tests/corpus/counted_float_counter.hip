__global__ void kernel(float* out, const float* in, int n) {
  for (float x = 0.0f; x < 16.0f; x += 1.0f) {  // expect: allowed 2 4 8
    out[int(x)] = x;
  }
}
