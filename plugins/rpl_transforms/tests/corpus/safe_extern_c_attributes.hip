extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(64, 256))) void attributed(float* out, const float* in) {
  float sum = 0.0f;
  for (int i = 0; i < 32; ++i) {  // expect: allowed 2 4 8
    sum = fmaf(sum, 0.5f, in[i]);
  }
  out[threadIdx.x] = sum;
}
