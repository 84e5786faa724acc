__global__ void reduce(int* out, const int* in) {
  int value = in[threadIdx.x];
  for (int i = 0; i < 6; ++i) {  // expect: allowed pragma 2 3 6; explicit 2 3 6; refused cross-lane, trip-count: 6 iterations are
    value += __shfl_xor(value, 1 << i);
  }
  out[threadIdx.x] = value;
}
