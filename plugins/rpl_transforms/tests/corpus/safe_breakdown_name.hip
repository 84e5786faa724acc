__global__ void names(float* out, const float* breakdown) {
  float returned = 0.0f;
  for (int i = 0; i < 16; ++i) returned += breakdown[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = returned;
}
