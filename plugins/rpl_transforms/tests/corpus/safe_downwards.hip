__global__ void down(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 15; i >= 0; --i) sum = sum * 2.0f + in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
