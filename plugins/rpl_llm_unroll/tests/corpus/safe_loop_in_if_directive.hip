__global__ void versions(float* out, const float* in) {
  float sum = 0.0f;
#if defined(FAST)
  for (int i = 0; i < 4; ++i) sum += in[i];  // expect: allowed pragma 2 4; explicit 2 4; refused trip-count: 4 iterations are fewer
#else
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed pragma 2 4 8; explicit 2 4 8
#endif
  out[threadIdx.x] = sum;
}
