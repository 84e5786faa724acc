__global__ void scale(float* out, const float* in) {
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int i = 0; i < 64; ++i) {  // expect: allowed 2 4 8
    sum += in[i * 64 + t];
  }
  out[t] = sum;
}
