__global__ void kernel(float* out, const float* in, int n) {
  float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  for (float x : values) {  // expect: allowed 2 4 8
    out[int(x)] = x;
  }
}
