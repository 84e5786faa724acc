#define KERNEL extern "C" __global__ void
KERNEL through_macro(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
