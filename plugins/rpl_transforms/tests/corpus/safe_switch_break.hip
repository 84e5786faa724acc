__global__ void choose(float* out, const int* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    switch (in[i]) {
      case 0: sum += 1.0f; break;
      default: sum += 2.0f; break;
    }
  }
  out[threadIdx.x] = sum;
}
