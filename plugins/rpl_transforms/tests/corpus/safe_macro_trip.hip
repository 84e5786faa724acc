#define WIDTH (4 * 6)
__global__ void macro_trip(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < WIDTH; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
