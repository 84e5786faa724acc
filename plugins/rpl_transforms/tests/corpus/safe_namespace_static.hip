namespace outer { namespace {
__global__ void hidden(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
} }
template <typename T> struct Use {};
