__global__ void branches(float* out, const float* in, int n) {
  float sum = 0.0f;
  if (n > 4) for (int i = 0; i < n; ++i) sum += in[i];  // expect: allowed 2 4 8
  else for (int i = 0; i < 12; ++i) sum -= in[i];  // expect: allowed 2 3 4 6 8
  out[threadIdx.x] = sum;
}
