__global__ void skip(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    if (in[i] < 0.0f) continue;
    sum += in[i];
  }
  out[threadIdx.x] = sum;
}
