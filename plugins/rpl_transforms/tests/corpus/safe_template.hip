template <typename T, int Count>
__global__ __launch_bounds__(256, 2) void templated(T* __restrict__ out, const T* __restrict__ in) {
  T sum = T(0);
  for (int i = 0; i < Count; ++i) sum += in[i * Count + threadIdx.x];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
template __global__ void templated<float, 32>(float*, const float*);
