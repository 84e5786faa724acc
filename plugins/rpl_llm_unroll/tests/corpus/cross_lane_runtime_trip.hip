__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < n; ++i) {  // expect: refused cross-lane: __shfl_xor exchanges between lanes and the trip count is not constant
    out[i] = __shfl_xor(n, i);
  }
}
