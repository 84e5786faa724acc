__global__ void pair(float* out, const float* in) {
  float a = 0.0f, b = 0.0f;
  for (int i = 0; i < 8; ++i) a += in[i]; for (int j = 0; j < 8; ++j) b -= in[j];  // expect: allowed 2 4 8 2 4 8
  out[threadIdx.x] = a * b;
}
