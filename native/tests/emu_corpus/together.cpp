// Work-items that work together: LDS, barriers, atomics, lanes.
#include "kernels.h"

KERNEL(reduce_lds) {
  __shared__ u32 a[256];
  const int t = THREAD;
  a[t] = in->u[ITEM % COUNT];
  BARRIER();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (t < s) a[t] += a[t + s];
    BARRIER();
  }
  if (t == 0) out->u[GROUP] = a[0];
}
KERNEL(reduce_float) {
  __shared__ float a[256];
  const int t = THREAD;
  a[t] = in->f[ITEM % COUNT];
  BARRIER();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (t < s) a[t] += a[t + s];
    BARRIER();
  }
  if (t == 0) out->f[GROUP] = a[0] / float(BLOCK);
}
KERNEL(reverse_lds) {
  __shared__ u64 a[256];
  a[THREAD] = in->l[ITEM % COUNT];
  BARRIER();
  if (ITEM < n / 2) out->l[ITEM] = a[BLOCK - 1 - THREAD];
}
KERNEL(scan) {
  __shared__ u32 a[2][256];
  const int t = THREAD;
  int now = 0;
  a[0][t] = in->small[ITEM % COUNT];
  BARRIER();
  for (int by = 1; by < BLOCK; by *= 2) {
    a[1 - now][t] = a[now][t] + (t >= by ? a[now][t - by] : 0);
    now = 1 - now;
    BARRIER();
  }
  if (ITEM < n) out->u[ITEM] = a[now][t];
}
KERNEL(transpose_lds) {
  __shared__ float a[16][17];
  const int t = THREAD;
  a[t / 16 % 16][t % 16] = in->f[ITEM % COUNT];
  BARRIER();
  if (ITEM < n) out->f[ITEM] = a[t % 16][t / 16 % 16 % (BLOCK / 16)];
}
KERNEL(histogram) {
  __shared__ u32 bins[64];
  if (THREAD < 64) bins[THREAD] = 0;
  BARRIER();
  __atomic_fetch_add(&bins[in->small[ITEM % COUNT]], 1u, __ATOMIC_RELAXED);
  BARRIER();
  if (THREAD < 64) __atomic_fetch_add(&out->shared[THREAD], bins[THREAD], __ATOMIC_RELAXED);
}
KERNEL(lds_bytes) {
  __shared__ u8 a[256];
  __shared__ u16 b[256];
  a[THREAD] = u8(in->u[ITEM % COUNT]);
  b[THREAD] = u16(in->u[ITEM % COUNT] >> 8);
  BARRIER();
  const int k = (THREAD * 7) % BLOCK;
  if (ITEM < n) out->u[ITEM] = u32(a[k]) + u32(i8(a[BLOCK - 1 - k])) + u32(b[k]) + u32(i16(b[BLOCK - 1 - k]));
}
typedef u32 v4 __attribute__((ext_vector_type(4)));
KERNEL(lds_wide) {
  __shared__ v4 a[256];
  const u32 x = in->u[ITEM % COUNT];
  a[THREAD] = (v4){x, x + 1, x * 3, ~x};
  BARRIER();
  const v4 y = a[BLOCK - 1 - THREAD];
  if (ITEM < n) out->u[ITEM] = y.x ^ y.y * 5 ^ y.z ^ y.w;
}
KERNEL(tiled_gemm) {
  __shared__ float a[16][16], b[16][16];
  const int x = THREAD % 16, y = THREAD / 16;
  float sum = 0;
  for (int tile = 0; tile < 2; ++tile) {
    for (int row = y; row < 16; row += BLOCK / 16) {
      a[row][x] = in->f[(row * 32 + tile * 16 + x) % COUNT];
      b[row][x] = in->f[((tile * 16 + row) * 16 + x) % COUNT];
    }
    BARRIER();
    for (int k = 0; k < 16; ++k) sum += a[y][k] * b[k][x];
    BARRIER();
  }
  if (ITEM < n) out->f[ITEM] = sum;
}
#define EACH_ATOMIC(name, function) \
  KERNEL(name) { if (ITEM < n) function(&out->shared[in->small[ITEM]], in->u[ITEM], __ATOMIC_RELAXED); }
EACH_ATOMIC(atomic_add, __atomic_fetch_add)
EACH_ATOMIC(atomic_sub, __atomic_fetch_sub)
EACH_ATOMIC(atomic_and, __atomic_fetch_and)
EACH_ATOMIC(atomic_or, __atomic_fetch_or)
EACH_ATOMIC(atomic_xor, __atomic_fetch_xor)
EACH_ATOMIC(atomic_max, __atomic_fetch_max)
EACH_ATOMIC(atomic_min, __atomic_fetch_min)
KERNEL(atomic_max_signed) { if (ITEM < n) __atomic_fetch_max((i32*)&out->shared[in->small[ITEM]], i32(in->u[ITEM]), __ATOMIC_RELAXED); }
KERNEL(atomic_add_u64) { if (ITEM < n) __atomic_fetch_add((u64*)out->shared + in->small[ITEM], in->l[ITEM], __ATOMIC_RELAXED); }
KERNEL(atomic_max_u64) { if (ITEM < n) __atomic_fetch_max((u64*)out->shared + in->small[ITEM], in->l[ITEM], __ATOMIC_RELAXED); }
KERNEL(atomic_compare_swap) {
  if (ITEM >= n) return;
  u32* place = &out->shared[in->small[ITEM]];
  u32 old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, old * 3 + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
KERNEL(atomic_exchange) {
  if (ITEM < n) ADD(&out->shared[100], __atomic_exchange_n(&out->shared[200 + ITEM % 512], in->u[ITEM], __ATOMIC_RELAXED));
}
#define EACH_LDS_ATOMIC(name, function)                                             \
  KERNEL(name) {                                                                    \
    __shared__ u32 a[64];                                                           \
    if (THREAD < 64) a[THREAD] = in->u[THREAD];                                     \
    BARRIER();                                                                      \
    function(&a[in->small[ITEM % COUNT]], in->u[(ITEM + 64) % COUNT], __ATOMIC_RELAXED); \
    BARRIER();                                                                      \
    if (THREAD < 64) out->u[GROUP * 64 + THREAD] = a[THREAD];                        \
  }
EACH_LDS_ATOMIC(lds_add, __atomic_fetch_add)
EACH_LDS_ATOMIC(lds_sub, __atomic_fetch_sub)
EACH_LDS_ATOMIC(lds_and, __atomic_fetch_and)
EACH_LDS_ATOMIC(lds_or, __atomic_fetch_or)
EACH_LDS_ATOMIC(lds_xor, __atomic_fetch_xor)
EACH_LDS_ATOMIC(lds_max, __atomic_fetch_max)
EACH_LDS_ATOMIC(lds_min, __atomic_fetch_min)
KERNEL(lds_add_u64) {
  __shared__ u64 a[64];
  if (THREAD < 64) a[THREAD] = in->l[THREAD];
  BARRIER();
  __atomic_fetch_add(&a[in->small[ITEM % COUNT]], in->l[(ITEM + 64) % COUNT], __ATOMIC_RELAXED);
  BARRIER();
  if (THREAD < 64) out->l[GROUP % 4 * 64 + THREAD] = a[THREAD];
}
KERNEL(spin_lock) {
  if (ITEM % 64 != 0) return;
  u32 expected = 2000;
  while (!__atomic_compare_exchange_n(&out->shared[1000], &expected, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) expected = 2000;
  out->shared[500] = out->shared[500] * 1 + 7;
  __atomic_store_n(&out->shared[1000], 2000u, __ATOMIC_RELEASE);
}
// lanes
#define LANES(name, expression)                         \
  KERNEL(name) {                                        \
    const u32 x = in->u[ITEM % COUNT];                  \
    const u32 y = in->u[(ITEM + 99) % COUNT];           \
    const u32 r = (expression);                         \
    (void)x, (void)y;                                   \
    if (ITEM < n) out->u[ITEM] = r;                     \
  }
LANES(shuffle_xor, SHFL(x, LANE ^ 13))
LANES(shuffle_down, SHFL(x, LANE + 3 < 64 ? LANE + 3 : LANE) + y)
LANES(shuffle_any, SHFL(x, int(y & 63)))
LANES(read_lane, READLANE(x, 17) + READLANE(x, 63))
LANES(first_lane, FIRSTLANE(x) ^ x)
LANES(ballot, u32(BALLOT((x & 3) == 0)) ^ u32(BALLOT(x > y) >> 32))
LANES(lane_number, u32(LANE) * 3)
LANES(swizzle_pairs, SWIZZLE(x, 0x041f))
LANES(swizzle_reverse, SWIZZLE(x, 0x7c1f))
LANES(swizzle_quad, SWIZZLE(x, 0x801b))
LANES(dpp_quad, DPP(y, x, 0x1b, 15, 15, false))
LANES(dpp_row_shr, DPP(y, x, 0x111, 15, 15, false) + DPP(0, x, 0x114, 15, 15, true))
LANES(dpp_row_shl, DPP(y, x, 0x103, 15, 15, false) + DPP(0, x, 0x108, 15, 15, true))
LANES(dpp_row_ror, DPP(y, x, 0x125, 15, 15, false))
LANES(dpp_mirror, DPP(y, x, 0x140, 15, 15, false) - DPP(y, x, 0x141, 15, 15, false))
LANES(dpp_bcast15, DPP(y, x, 0x142, 10, 15, false))
LANES(dpp_bcast31, DPP(y, x, 0x143, 12, 15, false))
LANES(dpp_wave_shr, DPP(y, x, 0x138, 15, 15, false))
LANES(dpp_banks, DPP(y, x, 0x55, 5, 9, false))
LANES(dpp_newbcast, DPP(y, x, 0x157, 15, 15, false))
LANES(dpp_reduce, [](u32 v) {
  v += DPP(0, v, 0x111, 15, 15, true);
  v += DPP(0, v, 0x112, 15, 15, true);
  v += DPP(0, v, 0x114, 15, 15, true);
  v += DPP(0, v, 0x118, 15, 15, true);
  v += DPP(0, v, 0x142, 10, 15, false);
  v += DPP(0, v, 0x143, 12, 15, false);
  return v;
}(x))
