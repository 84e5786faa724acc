__global__ void broken(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum +;
}
