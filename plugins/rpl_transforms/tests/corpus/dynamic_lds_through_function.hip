__device__ float* cache() {
  extern __shared__ float bytes[];
  return bytes;
}
__global__ void kernel(float* out, const float* in, int n) {
  float* cells = cache();
  for (int i = 0; i < 16; ++i) {  // expect: refused dynamic-lds
    out[i] = cells[i];
  }
}
