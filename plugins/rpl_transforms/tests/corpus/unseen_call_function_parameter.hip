template <typename Function>
__global__ void kernel(float* out, const float* in, Function f) {
  for (int i = 0; i < 16; ++i) {  // expect: allowed 2 4 8
    out[i] = f(in[i]);
  }
}
struct Twice { __device__ float operator()(float x) const { return x + x; } };
template __global__ void kernel<Twice>(float*, const float*, Twice);
