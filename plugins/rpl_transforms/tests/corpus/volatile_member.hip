struct State { volatile float ready; };
__global__ void kernel(float* out, State* state) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = state->ready;
  }
}
