__global__ void tile(float* out, const float* in) {
  __shared__ float cache[64];
  cache[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 64; ++k) sum += cache[k];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
