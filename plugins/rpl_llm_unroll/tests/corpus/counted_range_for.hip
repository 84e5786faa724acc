__global__ void kernel(float* out, const float* in, int n) {
  float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  for (float x : values) {  // expect: refused counted: a range-for loop
    out[int(x)] = x;
  }
}
