__global__ void skip(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) {  // expect: allowed pragma 2 4 8; refused explicit-form: continue would skip
    if (in[i] < 0.0f) continue;
    sum += in[i];
  }
  out[threadIdx.x] = sum;
}
