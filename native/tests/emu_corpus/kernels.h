// What kernels of the corpus may use, on gfx942 and on x86. One signature for all, one argument for each:
// inputs with numbers of several kinds, outputs that are compared byte by byte.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef _Float16 half;

#define COUNT 1024
struct In {
  u32 u[COUNT];     // any bits
  float f[COUNT];   // -1000 .. 1000, some zeros and halves of integers
  double d[COUNT];
  u64 l[COUNT];     // any bits
  half h[COUNT];    // -8 .. 8
  u32 small[COUNT]; // 0 .. 63
};
struct Out {
  union { u32 u[COUNT]; float f[COUNT]; u64 l[COUNT]; double d[COUNT]; half h[COUNT]; u8 b[COUNT]; };
  u32 shared[COUNT];  // for atomics; starts with 1000 + its place
};

#if defined(__AMDGCN__)
#define __shared__ __attribute__((shared))
#define DEVICE static __attribute__((device))
#define DEVICE_CALL static __attribute__((device, noinline))
#define KERNEL(name) extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 256))) void name(const In* in, Out* out, int n)
#define THREAD int(__builtin_amdgcn_workitem_id_x())
#define GROUP int(__builtin_amdgcn_workgroup_id_x())
#define BLOCK int(__builtin_amdgcn_workgroup_size_x())
#define LANE int(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)))
#define BARRIER() (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
#define BALLOT(x) __builtin_amdgcn_ballot_w64(x)
DEVICE u32 SHFL(u32 v, int lane) { return u32(__builtin_amdgcn_ds_bpermute(lane * 4, int(v))); }
#define READLANE(v, lane) u32(__builtin_amdgcn_readlane(int(v), lane))
#define FIRSTLANE(v) u32(__builtin_amdgcn_readfirstlane(int(v)))
#define DPP(old, v, control, rows, banks, bound) u32(__builtin_amdgcn_update_dpp(int(old), int(v), control, rows, banks, bound))
#define SWIZZLE(v, how) u32(__builtin_amdgcn_ds_swizzle(int(v), how))
#else
#define __shared__ static
#define DEVICE static
#define DEVICE_CALL static __attribute__((noinline))
#define KERNEL(name) extern "C" void name(const In* in, Out* out, int n)
extern "C" {
int corpus_thread(void);
int corpus_group(void);
int corpus_block(void);
void corpus_barrier(void);
u64 corpus_exchange(u32 value, int lane, u32* got);
}
#define THREAD corpus_thread()
#define GROUP corpus_group()
#define BLOCK corpus_block()
#define LANE (THREAD & 63)
#define BARRIER() corpus_barrier()
DEVICE u64 BALLOT(bool x) { u32 got; return corpus_exchange(x ? 1 : 0, 0, &got); }
DEVICE u32 SHFL(u32 v, int lane) { u32 got; corpus_exchange(v, lane & 63, &got); return got; }
#define READLANE(v, lane) SHFL(v, lane)
#define FIRSTLANE(v) SHFL(v, 0)
DEVICE u32 DPP(u32 old, u32 v, int control, int rows, int banks, bool bound) {
  const int j = LANE, row = j & ~15, at = j & 15, by = control & 15;
  int from = -1;
  if (control < 0x100) from = (j & ~3) | (control >> (2 * (j & 3)) & 3);
  else if (control > 0x150 - 1) from = row + by;
  else if (control >> 4 == 0x10) from = at + by < 16 ? j + by : -1;
  else if (control >> 4 == 0x11) from = at - by >= 0 ? j - by : -1;
  else if (control >> 4 == 0x12) from = row + (at + 16 - by) % 16;
  else if (control == 0x138) from = j - 1;
  else if (control == 0x140) from = row + 15 - at;
  else if (control == 0x141) from = (j & ~7) + 7 - (j & 7);
  else if (control == 0x142) from = row ? row - 1 : -1;
  else if (control == 0x143) from = j >= 32 ? 31 : -1;
  const u32 got = SHFL(v, from < 0 ? 0 : from);
  const bool on = (rows >> (j / 16) & 1) && (banks >> (j / 4 % 4) & 1);
  if (!on || (from < 0 && !bound)) return old;
  return from < 0 ? 0 : got;
}
DEVICE u32 SWIZZLE(u32 v, int how) {
  const int j = LANE;
  return SHFL(v, how >> 15 ? (j & ~3) | (how >> (2 * (j & 3)) & 3) : (j & 32) | ((((j & 31) & (how & 31)) | (how >> 5 & 31)) ^ (how >> 10 & 31)));
}
#endif
#define ITEM (GROUP * BLOCK + THREAD)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)

// One line for one output per work-item.
#define ONE(name, field, expression)                      \
  KERNEL(name) {                                          \
    const int g = ITEM;                                   \
    if (g < n) out->field[g] = (expression);              \
  }
