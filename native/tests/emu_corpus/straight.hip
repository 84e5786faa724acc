// Kernels without a branch around their work: each wave executes each instruction once.
#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void
#define I (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())
typedef float f2 __attribute__((ext_vector_type(2)));
typedef float f16 __attribute__((ext_vector_type(16)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));

KERNEL copy(const double* in, double* out) { out[I] = in[I]; }
KERNEL saxpy(const float* in, float* out) { out[I] = __builtin_fmaf(in[I], 2.5f, out[I]); }
KERNEL fma_f32(const float* in, float* out) {
  float x = in[I];
  for (int k = 0; k < 16; ++k) x = __builtin_fmaf(x, in[0], in[1]);
  out[I] = x;
}
KERNEL packed_fma_f32(const f2* in, f2* out) {
  f2 x = in[I];
  for (int k = 0; k < 16; ++k) x = __builtin_elementwise_fma(x, in[I + 1], x);
  out[I] = x;
}
KERNEL add_f64(const double* in, double* out) {
  double x = in[I];
  for (int k = 0; k < 16; ++k) x += in[0];
  out[I] = x;
}
KERNEL mfma_f16(const h4* in, f16* out) {
  const h4 a = in[I];
  f16 sum = {};
  for (int k = 0; k < 8; ++k) sum = __builtin_amdgcn_mfma_f32_32x32x8f16(a, a, sum, 0, 0, 0);
  out[I] = sum;
}
