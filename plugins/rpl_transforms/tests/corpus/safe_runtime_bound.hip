__global__ void total(float* out, const float* in, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; i++) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
