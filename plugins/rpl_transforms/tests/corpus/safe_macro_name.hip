#define DEFINE_KERNEL(name) extern "C" __global__ void name
DEFINE_KERNEL(named)(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
