extern __shared__ float dynamic[];
__global__ void mixed(float* out, const float* in) {
  dynamic[threadIdx.x] = in[threadIdx.x];
  float element = dynamic[threadIdx.x];
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i] * element;  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
