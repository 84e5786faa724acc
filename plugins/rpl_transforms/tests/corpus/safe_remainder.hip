__global__ void ten(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 10; ++i) sum = sum * 0.5f + in[i];  // expect: allowed 2 4 5 8
  out[threadIdx.x] = sum;
}
