__global__ void sizes(float* out, const float* in, size_t n) {
  float sum = 0.0f;
  for (size_t i = 0; i < n; i += 2) { sum += in[i]; }  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
