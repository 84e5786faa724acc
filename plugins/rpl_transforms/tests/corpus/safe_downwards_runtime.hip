__global__ void down(float* out, const float* in, int low, int high) {
  float sum = 0.0f;
  for (int i = high; i > low; i -= 2) sum = sum * 2.0f + in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
