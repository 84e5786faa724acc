__global__ void multiply(float* out, const float* a, const float* b) {
  for (int row = 0; row < 8; ++row) {  // expect: refused innermost
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) {  // expect: allowed 2 4 8
      sum += a[row * 64 + k] * b[k * 64 + threadIdx.x];
    }
    out[row * 64 + threadIdx.x] = sum;
  }
}
