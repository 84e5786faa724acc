// What compiled code has of opcodes that no plain source leads to: builtins of clang, MODE, loads to LDS. One wave.
#define KERNEL extern "C" __attribute__((global))
#define LANE __builtin_amdgcn_workitem_id_x()
#define SHARED __attribute__((shared))
typedef float float2_ __attribute__((ext_vector_type(2)));
typedef float float4_ __attribute__((ext_vector_type(4)));
typedef _Float16 half2_ __attribute__((ext_vector_type(2)));
typedef __attribute__((address_space(3))) int LdsInt;
typedef __attribute__((address_space(3))) void LdsVoid;
typedef __attribute__((address_space(1))) void GlobalVoid;

KERNEL void pairs(const float2_* a, const float2_* b, const float2_* c, float2_* out) {
  const int k = LANE;
  out[k] = __builtin_elementwise_fma(a[k], b[k], c[k]);
  out[64 + k] = a[k] * b[k];
  out[128 + k] = a[k] + c[k];
}

KERNEL void half_pairs(const half2_* a, const half2_* b, const half2_* c, half2_* out) {
  const int k = LANE;
  out[k] = __builtin_elementwise_fma(a[k], b[k], c[k]);
  out[64 + k] = a[k] * b[k];
}

KERNEL void matrix(const float* a, const float* b, float4_* out) {
  const int k = LANE;
  float4_ sum = {0, 0, 0, 0};
  out[k] = __builtin_amdgcn_mfma_f32_16x16x4f32(a[k], b[k], sum, 0, 0, 0);
}

// MODE's bits 0 to 3 around one operation each; the empty assembly keeps them there.
template <class T> __attribute__((device)) T kept(T x) { asm volatile("" : "+v"(x)); return x; }
KERNEL void rounded(const float* a, const float* b, const double* d, const _Float16* h, const _Float16* g, float* sum, _Float16* short_, float* from_double, _Float16* half_product, half2_* half_sums, float2_* sums, int mode) {
  const int k = LANE;
  __builtin_amdgcn_s_setreg(0x1801, __builtin_amdgcn_readfirstlane(mode));
  sum[k] = kept(kept(a[k]) + kept(b[k]));
  short_[k] = kept((_Float16)kept(a[k]));
  from_double[k] = kept((float)kept(d[k]));
  half_product[k] = kept((_Float16)(kept(h[k]) * kept(g[k])));
  half2_ x = {h[k], g[k]}, y = {g[k], g[k]};
  half_sums[k] = kept(kept(x) + kept(y));
  float2_ p = {a[k], b[k]}, q = {b[k], b[k]};
  sums[k] = kept(kept(p) + kept(q));
  __builtin_amdgcn_s_setreg(0x1801, 0);
}

// Lanes whose number is odd take places; what was loaded to LDS comes out in another order.
KERNEL void through_lds(const int* from, int* place, int* left, int* turned) {
  SHARED int counter;
  SHARED int words[64];
  const int k = LANE;
  if (k == 0) counter = 100;
  __builtin_amdgcn_s_barrier();
  if (k & 1) place[k] = __builtin_amdgcn_ds_append((LdsInt*)&counter);
  if (k >= 48) place[k] += 1000 * __builtin_amdgcn_ds_consume((LdsInt*)&counter);
  __builtin_amdgcn_s_barrier();
  left[k] = counter;
  __builtin_amdgcn_global_load_lds((GlobalVoid*)(from + k), (LdsVoid*)words, 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_barrier();
  turned[k] = words[63 - k];
}

KERNEL void sums(const int* a, const int* b, const int* c, const unsigned long* d, unsigned long* wide, int* out) {
  const int k = LANE;
  out[k] = __builtin_amdgcn_sdot4(a[k], b[k], c[k], true);
  out[64 + k] = (int)__builtin_amdgcn_udot8(a[k], b[k], c[k], true);
  out[128 + k] = __builtin_amdgcn_sdot8(a[k], b[k], c[k], false);
  out[192 + k] = (int)__builtin_amdgcn_msad_u8(a[k], b[k], c[k]);
  out[256 + k] = (int)__builtin_amdgcn_sad_u16(a[k], b[k], c[k]);
  out[320 + k] = (int)__builtin_amdgcn_perm(a[k], b[k], c[k] & 0x07050301);
  wide[k] = __builtin_amdgcn_qsad_pk_u16_u8(d[k], b[k], d[63 - k]);
  wide[64 + k] = __builtin_amdgcn_mqsad_pk_u16_u8(d[k], b[k], d[63 - k]);
}

KERNEL void cube(const float* x, const float* y, const float* z, float* out) {
  const int k = LANE;
  out[k] = __builtin_amdgcn_cubeid(x[k], y[k], z[k]);
  out[64 + k] = __builtin_amdgcn_cubema(x[k], y[k], z[k]);
  out[128 + k] = __builtin_amdgcn_cubesc(x[k], y[k], z[k]);
  out[192 + k] = __builtin_amdgcn_cubetc(x[k], y[k], z[k]);
}
