__global__ void versions(float* out, const float* in) {
  float sum = 0.0f;
#if defined(FAST)
  for (int i = 0; i < 4; ++i) sum += in[i];  // expect: allowed 2 4
#else
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
#endif
  out[threadIdx.x] = sum;
}
