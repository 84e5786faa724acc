__device__ float row_sum(const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
  return sum;
}
__global__ void caller(float* out, const float* in) {
  out[threadIdx.x] = row_sum(in);
}
int host_only(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += i;
  return sum;
}
