struct State { volatile float ready; };
__global__ void kernel(float* out, State* state) {
  for (int i = 0; i < 16; ++i) {  // expect: refused volatile: ready is volatile
    out[i] = state->ready;
  }
}
