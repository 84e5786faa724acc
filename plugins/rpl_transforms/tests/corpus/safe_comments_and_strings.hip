// for (int i = 0; i < 16; ++i) __syncthreads();
__global__ void quiet(float* out, const float* in) {
  /* for (int i = 0; i < 16; ++i) atomicAdd(out, 1.0f); */
  const char* text = "for (int i = 0; i < 16; ++i) {";
  float sum = text[0];
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    sum += in[i];  // not a __syncthreads(), and no break
  }
  out[threadIdx.x] = sum;
}
