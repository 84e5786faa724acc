struct Sum { float value; };
__device__ Sum operator+(Sum a, Sum b) {
  __threadfence();
  return Sum{a.value + b.value};
}
__global__ void kernel(float* out, const float* in, int n) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = (Sum{in[i]} + Sum{1.0f}).value;
  }
}
