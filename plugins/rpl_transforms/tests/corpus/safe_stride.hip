__global__ void stride(float* out, const float* in) {
  float sum = 0.0f;
  for (unsigned i = 0; i != 24u; i += 3) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
