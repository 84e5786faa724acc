__global__ void lambda(float* out, const float* in) {
  auto twice = [](float x) { return 2.0f * x; };
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += twice(in[i]);  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
