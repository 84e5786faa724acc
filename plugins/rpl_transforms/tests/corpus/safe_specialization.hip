template <typename T> __global__ void special(T* out, const T* in);
template <> __global__ void special<float>(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
