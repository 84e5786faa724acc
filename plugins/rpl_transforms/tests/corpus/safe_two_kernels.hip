__device__ inline float square(float x) { return x * x; }
__global__ void first(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += square(in[i]);  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
__global__ void second(float* out, const float* in) {
  for (int i = 0; i < 16; ++i) {  // expect: refused barrier
    out[threadIdx.x] += in[i];
    __syncthreads();
  }
}
