__global__ void grid_stride(float* out, const float* in, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {  // expect: allowed 2 4 8
    out[i] = sqrtf(in[i]);
  }
}
