// What a user would run: kernels with usual signatures, checked against numpy.
#define __shared__ __attribute__((shared))
#define KERNEL(block) extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, block))) void
#define T int(__builtin_amdgcn_workitem_id_x())
#define G int(__builtin_amdgcn_workgroup_id_x())
#define GY int(__builtin_amdgcn_workgroup_id_y())
#define SYNC() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
typedef float f4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));

// One workgroup for a row of n numbers.
KERNEL(256) softmax(const float* in, float* out, int n) {
  __shared__ float part[256];
  const float* row = in + G * n;
  float most = -1e30f;
  for (int k = T; k < n; k += 256) most = __builtin_fmaxf(most, row[k]);
  part[T] = most;
  SYNC();
  for (int s = 128; s; s /= 2) { if (T < s) part[T] = __builtin_fmaxf(part[T], part[T + s]); SYNC(); }
  most = part[0];
  SYNC();
  float sum = 0;
  for (int k = T; k < n; k += 256) sum += __builtin_exp2f((row[k] - most) * 1.44269504f);
  part[T] = sum;
  SYNC();
  for (int s = 128; s; s /= 2) { if (T < s) part[T] += part[T + s]; SYNC(); }
  for (int k = T; k < n; k += 256) out[G * n + k] = __builtin_exp2f((row[k] - most) * 1.44269504f) / part[0];
}
KERNEL(256) gemm(const float* a, const float* b, float* c, int n) {
  __shared__ float x[16][16], y[16][16];
  const int i = T / 16, j = T % 16;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[i][j] = a[(GY * 16 + i) * n + k + j];
    y[i][j] = b[(k + i) * n + G * 16 + j];
    SYNC();
    for (int l = 0; l < 16; ++l) sum += x[i][l] * y[l][j];
    SYNC();
  }
  c[(GY * 16 + i) * n + G * 16 + j] = sum;
}
KERNEL(256) reduction(const float* in, float* out, int n) {
  float sum = 0;
  for (int k = G * 256 + T; k < n; k += 1024) sum += in[k];
  for (int by = 32; by; by /= 2) {
    const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    sum += __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((lane ^ by) * 4, __builtin_bit_cast(int, sum)));
  }
  if (T % 64 == 0) __hip_atomic_fetch_add(out, sum, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
KERNEL(256) histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned own[256];
  own[T] = 0;
  SYNC();
  for (int k = G * 256 + T; k < n; k += 1024) __hip_atomic_fetch_add(&own[in[k]], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  SYNC();
  __hip_atomic_fetch_add(&bins[T], own[T], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// A wave for a tile of 16 x 16; B has its columns one after the other.
KERNEL(64) mfma_gemm(const _Float16* a, const _Float16* b, float* c, int n) {
  f4 sum = {0, 0, 0, 0};
  const int row = T % 16, part = T / 16;
  for (int k = 0; k < n; k += 16) {
    const h4 x = *(const h4*)&a[(GY * 16 + row) * n + k + 4 * part];
    const h4 y = *(const h4*)&b[(G * 16 + row) * n + k + 4 * part];
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sum, 0, 0, 0);
  }
  for (int k = 0; k < 4; ++k) c[(GY * 16 + 4 * part + k) * n + G * 16 + row] = sum[k];
}
// All workgroups meet: each waits until every other has come.
KERNEL(64) grid_barrier(unsigned* count, unsigned* out, unsigned groups) {
  if (T == 0) {
    __hip_atomic_fetch_add(count, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(count, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < groups) __builtin_amdgcn_s_sleep(1);
  }
  SYNC();
  if (T == 0) out[G] = *(volatile unsigned*)count;
}
// The same twice by the GPU's barrier for all waves, here of one wave in each workgroup.
KERNEL(64) gws_barrier(unsigned* count, unsigned* out, unsigned waves) {
  if (G == 0) {
    __builtin_amdgcn_ds_gws_init(waves - 1, 0);
    if (T == 0) __hip_atomic_store(count + 1, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
  while (!__hip_atomic_load(count + 1, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
  for (unsigned round = 0; round < 2; ++round) {
    if (T == 0) __hip_atomic_fetch_add(count, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    __builtin_amdgcn_ds_gws_barrier(waves - 1, 0);
    if (T == 0) out[round * waves + G] = *(volatile unsigned*)count;
    __builtin_amdgcn_ds_gws_barrier(waves - 1, 0);
  }
}
KERNEL(64) endless(volatile int* stop) { while (!*stop) {} }
KERNEL(64) wild(int* p) { p[(long)T << 40] = 1; }
// Sums in each direction of MODE's bits for floats, a double beside, and to the nearest again.
KERNEL(64) directions(float a, float b, double c, double d, float* sums, double* twice) {
  float x = a;
  asm volatile("" : "+v"(x));
  __builtin_amdgcn_s_setreg(1 | 1 << 11, 1);
  sums[0] = x + b;
  __builtin_amdgcn_s_setreg(1 | 1 << 11, 2);
  asm volatile("" : "+v"(x));
  sums[1] = x + b;
  __builtin_amdgcn_s_setreg(1 | 1 << 11, 3);
  asm volatile("" : "+v"(x));
  sums[2] = x + b;
  twice[0] = c + d;
  __builtin_amdgcn_s_setreg(1 | 1 << 11, 0);
  asm volatile("" : "+v"(x));
  sums[3] = x + b;
}
// The instruction is as long as two words, and what lies behind it is found all the same.
KERNEL(64) seldom(int* p, int way) {
  if (way != 0) asm volatile("v_cvt_pkaccum_u8_f32 v4, v6, v8" : : : "v4");
  p[T] = 7;
}
KERNEL(64) no_such_instruction(int* p) { asm volatile("s_sendmsg sendmsg(MSG_GET_DOORBELL)"); *p = 1; }
KERNEL(128) race(int* out) {
  __shared__ int a[128];
  a[T] = T;
  out[T] = a[127 - T];
}
KERNEL(128) no_race(int* out) {
  __shared__ int a[128];
  a[T] = T;
  SYNC();
  out[T] = a[127 - T];
}
KERNEL(128) unwritten(int* out) {
  __shared__ int a[128];
  if (T < 5) a[T] = 1;
  SYNC();
  out[T] = a[T];
}
KERNEL(64) between_groups(int* out) { out[T] = G; }
// As in rocprofiler-compute's sample program: docs/reference/counters.md, section 5.
KERNEL(256) copy_doubles(double* from, double*, double* to, int n, int) {
  const int i = G * int(__builtin_amdgcn_workgroup_size_x()) + T;
  if (i < n) to[i] = from[i];
}
KERNEL(64) unwritten_register(int* out) {
  int x;
  asm volatile("v_mov_b32 %0, v90\n v_add_u32 %0, %0, v91" : "=v"(x) : : "v90", "v91");
  out[T] = x;
}
// Lanes of which only some were written.
KERNEL(64) partly_written_register(int* out) {
  int x;
  if (T < 32) asm volatile("v_mov_b32 v90, 5" : : : "v90");
  asm volatile("v_add_u32 %0, 1, v90" : "=v"(x));
  out[T] = x;
}
KERNEL(64) unwritten_scalar(int* out) {
  int x;
  asm volatile("s_add_u32 %0, s90, s91\n s_cmp_lg_u32 %0, 0\n s_cbranch_scc0 0" : "=s"(x) : : "s90", "s91", "scc");
  *out = 1;
}
// Garbage that has no effect: half of a sum that nobody looks at.
KERNEL(64) unused_garbage(int* out) {
  int x;
  asm volatile("v_mov_b32 v90, 1\n v_lshl_add_u64 v[90:91], v[90:91], 2, 1\n v_mov_b32 %0, v90" : "=v"(x) : : "v90", "v91");
  out[T] = x;
}
KERNEL(64) garbage_in_lds(int* out) {
  __shared__ int a[64];
  out[T] = ((volatile int*)a)[T];
}
KERNEL(128) barrier_of_some_lanes(int* out) {
  if (T % 2) asm volatile("s_barrier");
  out[T] = 1;
}
KERNEL(128) different_barriers(int* out) {
  if (__builtin_amdgcn_readfirstlane(T) < 64) asm volatile("s_nop 1\n s_barrier");
  else asm volatile("s_nop 2\n s_barrier");
  out[T] = 1;
}
// Four instructions from one reading of the clock to the next.
KERNEL(64) clock(unsigned long* out) {
  unsigned long from, to;
  asm volatile("s_memtime %0\ns_nop 0\nv_nop\ns_waitcnt lgkmcnt(0)\ns_memtime %1\ns_waitcnt lgkmcnt(0)" : "=&s"(from), "=&s"(to));
  out[T] = to - from;
}
// Loads and stores of each width at places that the caller chooses, in memory and in LDS.
KERNEL(64) chosen_places(const unsigned* where, char* memory, unsigned* out) {
  typedef unsigned two __attribute__((ext_vector_type(2)));
  typedef unsigned three __attribute__((ext_vector_type(3)));
  typedef unsigned four __attribute__((ext_vector_type(4)));
  __shared__ unsigned lds[4096];
  for (unsigned k = 0; k < 4096; ++k) lds[k] = ((unsigned*)memory)[k];
  SYNC();
  const unsigned at = where[T];
  const unsigned in_lds = at + (unsigned)(unsigned long)(__attribute__((address_space(3))) unsigned*)lds;
  char* p = memory + at;
  unsigned a1, b1; two a2, b2; three a3, b3; four a4, b4, c4;
  asm volatile("ds_read_b32 %0, %1" : "=v"(a1) : "v"(in_lds));
  asm volatile("ds_read_b64 %0, %1" : "=v"(a2) : "v"(in_lds));
  asm volatile("ds_read_b96 %0, %1" : "=v"(a3) : "v"(in_lds));
  asm volatile("ds_read_b128 %0, %1" : "=v"(a4) : "v"(in_lds));
  asm volatile("ds_read2_b64 %0, %1 offset0:5 offset1:2" : "=v"(c4) : "v"(in_lds));
  asm volatile("global_load_dword %0, %1, off" : "=v"(b1) : "v"(p));
  asm volatile("global_load_dwordx2 %0, %1, off" : "=v"(b2) : "v"(p));
  asm volatile("global_load_dwordx3 %0, %1, off" : "=v"(b3) : "v"(p));
  asm volatile("global_load_dwordx4 %0, %1, off" : "=v"(b4) : "v"(p));
  asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)" : "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(b1), "+v"(b2), "+v"(b3), "+v"(b4), "+v"(c4));
  unsigned* o = out + 64 * T;
  const unsigned words[] = {a1, a2.x, a2.y, a3.x, a3.y, a3.z, a4.x, a4.y, a4.z, a4.w, c4.x, c4.y, c4.z, c4.w,
                            b1, b2.x, b2.y, b3.x, b3.y, b3.z, b4.x, b4.y, b4.z, b4.w};
  for (int k = 0; k < 24; ++k) o[k] = words[k];
  const unsigned first = 4 * T;
  const four own = {first, first + 1, first + 2, first + 3};
  asm volatile("global_store_dwordx3 %0, %1, off" : : "v"(p), "v"(own.xyz) : "memory");
  asm volatile("ds_write_b64 %0, %1\ns_waitcnt lgkmcnt(0)" : : "v"(in_lds), "v"(own.xy) : "memory");
  SYNC();
  for (unsigned k = 0; k < 4096; ++k) out[4096 + k] = lds[k];
}
