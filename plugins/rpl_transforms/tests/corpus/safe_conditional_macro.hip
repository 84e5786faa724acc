#ifndef TILE
#define TILE 6
#endif
__global__ void tile(float* out, const float* in) {
  float sum = 0.0f;
  // The build may say -DTILE=5: 6 is not certain, and explicit copies would need to know.
  for (int i = 0; i < TILE; ++i) sum += in[i];  // expect: allowed 2 4 8
  out[threadIdx.x] = sum;
}
