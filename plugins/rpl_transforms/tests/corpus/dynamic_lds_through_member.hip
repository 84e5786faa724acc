struct View { float* cells; };
extern __shared__ float bytes[];
__global__ void kernel(float* out, const float* in, int n) {
  View view;
  view.cells = bytes;
  for (int i = 0; i < 16; ++i) {  // expect: refused dynamic-lds
    out[i] = view.cells[i];
  }
}
